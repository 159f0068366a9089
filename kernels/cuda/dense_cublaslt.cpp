// Products of matrices by cuBLASLt, which counts in columns: what is row-major [m, n] for us is its n x m, so
// it is asked for c^T = op(b)^T op(a)^T. Accumulation is in f32 everywhere.
#include <cublasLt.h>

#include <array>
#include <source_location>
#include <stdexcept>
#include <utility>

#include "kernels/cuda/dense.h"
#include "kernels/cuda/runtime.h"
#include "models/error.h"

namespace plumb::cuda {
namespace {

void check(cublasStatus_t status, std::source_location where = std::source_location::current()) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string place =
      std::string(" (seen in ") + where.function_name() + ", line " + std::to_string(where.line()) + ")";
  if (status == CUBLAS_STATUS_ALLOC_FAILED)
    throw Error(ExitCode::out_of_memory, "cuBLASLt: no memory for its own tables" + place +
                                             "; lower --bs, or free the GPU of other programs");
  const ExitCode cause = cause_of_failure();
  throw Error(cause, std::string("cuBLASLt: ") + cublasLtGetStatusString(status) + place + remedy_for(cause));
}

// Owns what a cublasLt…Create() made.
template <auto kDestroy>
struct Destroy {
  template <typename T>
  void operator()(T* made) const {
    kDestroy(made);
  }
};
template <typename Handle, auto kDestroy>
using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<kDestroy>>;
using Operation = Owner<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;
using Library = std::shared_ptr<std::remove_pointer_t<cublasLtHandle_t>>;  // plans outlive their engine

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      throw std::logic_error("cuBLASLt isn't asked for products of " + std::string(name_of(dtype)));
  }
}

std::string text_of(const GemmProblem& problem) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  return number(problem.m) + " x " + number(problem.n) + " x " + number(problem.k) + " in " +
         std::string(name_of(problem.in)) + " to " + std::string(name_of(problem.out));
}

// Row-major; stride 0: rows lie one behind the other.
Layout make_layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride = 0) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, data_type(dtype), static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), stride > 0 ? stride : columns));
  return Layout(made);
}

template <typename T>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof value));
}
template <typename T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value));
}

// CUBLAS_COMPUTE_32F is strict f32; halves are multiplied exactly and summed in f32.
Operation make_operation(const GemmProblem& problem) {
  const bool tf32 = problem.allow_tf32 && problem.in == DType::f32;
  cublasLtMatmulDesc_t made = nullptr;
  check(
      cublasLtMatmulDescCreate(&made, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
  Operation operation(made);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, problem.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, problem.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (problem.bias) {
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(problem.out));
  }
  return operation;
}

class CublasLtPlan final : public GemmPlan {
 public:
  CublasLtPlan(Library library, const GemmProblem& problem, std::size_t workspace_limit)
      : library_(std::move(library)),
        problem_(problem),
        operation_(make_operation(problem)),
        a_(problem.transpose_a ? make_layout(problem.in, problem.k, problem.m, problem.a_stride)
                               : make_layout(problem.in, problem.m, problem.k, problem.a_stride)),
        b_(problem.transpose_b ? make_layout(problem.in, problem.n, problem.k)
                               : make_layout(problem.in, problem.k, problem.n)),
        c_(make_layout(problem.out, problem.m, problem.n, problem.c_stride)),
        chosen_(choose(workspace_limit)) {}

  std::size_t workspace_bytes() const override { return chosen_.workspaceSize; }

  void run(cudaStream_t stream, const GemmOperands& operands, std::byte* workspace) const override {
    if (problem_.bias) set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    const float one = 1, zero = 0;
    check(cublasLtMatmul(library_.get(), operation_.get(), &one, operands.b, b_.get(), operands.a, a_.get(),
                         &zero, operands.c, c_.get(), operands.c, c_.get(), &chosen_.algo, workspace,
                         chosen_.workspaceSize, stream));
  }

 private:
  // The library's first choice of those that add up in f32 however k is split. Buffers begin at multiples of
  // 64 bytes (views of gradients in a bucket).
  cublasLtMatmulHeuristicResult_t choose(std::size_t workspace_limit) const {
    constexpr std::uint32_t kAlignmentBytes = 64;
    constexpr std::uint32_t kReductions =
        CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    // Heuristics read the alignment off the bias' address, which isn't known yet.
    if (problem_.bias) set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, std::uintptr_t{kAlignmentBytes});
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made));
    const Preference preference(made);
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_limit});
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kReductions);
    for (const auto attribute :
         std::array{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(preference, attribute, kAlignmentBytes);
    std::array<cublasLtMatmulHeuristicResult_t, 8> results{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        library_.get(), operation_.get(), b_.get(), a_.get(), c_.get(), c_.get(), preference.get(),
        static_cast<int>(results.size()), results.data(), &found);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status);
    for (int i = 0; i < found; ++i)
      if (results.at(i).state == CUBLAS_STATUS_SUCCESS) return results.at(i);
    throw Error(ExitCode::internal,
                "cuBLASLt has no way to multiply " + text_of(problem_) + " within " +
                    std::to_string(workspace_limit) +
                    " bytes of workspace; choose another one of --fp32, --tf32, --fp16 and --bf16");
  }

  Library library_;
  GemmProblem problem_;
  Operation operation_;
  Layout a_, b_, c_;
  cublasLtMatmulHeuristicResult_t chosen_;
};

class CublasLtEngine final : public GemmEngine {
 public:
  CublasLtEngine() {
    cublasLtHandle_t made = nullptr;
    check(cublasLtCreate(&made));
    library_ = Library(made, cublasLtDestroy);
  }
  std::unique_ptr<GemmPlan> plan(const GemmProblem& problem, std::size_t workspace_limit) override {
    return std::make_unique<CublasLtPlan>(library_, problem, workspace_limit);
  }

 private:
  Library library_;
};

}  // namespace

std::unique_ptr<GemmEngine> make_gemm_engine() {
  return std::make_unique<CublasLtEngine>();
}

}  // namespace plumb::cuda
