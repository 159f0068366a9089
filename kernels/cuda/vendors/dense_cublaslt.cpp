// Matrix products by cuBLASLt, which is column-major: our row-major [m, n] is its n x m, so it computes c^T =
// op(b)^T op(a)^T. Accumulation is always f32.
#include <cublasLt.h>
#include <dlfcn.h>

#include <array>
#include <source_location>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "kernels/cuda/runtime/runtime.h"
#include "kernels/cuda/vendors/dense.h"

#define PLUMB_TEXT_OF(number) #number
#define PLUMB_TEXT(number) PLUMB_TEXT_OF(number)

namespace plumb::cuda {
namespace {

// launch/cuda_libraries.sh finds this name in programs.
constexpr const char* kCublasLt = "libcublasLt.so." PLUMB_TEXT(CUBLAS_VER_MAJOR);

Error not_loaded() {
  const char* reason = dlerror();
  return Error(
      ExitCode::unavailable,
      "--device cuda: cannot load {}: {}; put its folder first in LD_LIBRARY_PATH, or use --device cpu",
      kCublasLt, reason ? reason : "no reason given");
}

void* opened(int how) {
  return dlopen(kCublasLt, how | RTLD_LAZY | RTLD_LOCAL);
}

// A function of a library, as the type that it is assigned to.
struct LoadedFunction {
  void* address;
  template <typename Function>
  operator Function*() const {
    return reinterpret_cast<Function*>(address);
  }
};

// cuBLASLt, loaded when the first GPU is used: its 420,000 relocations would cost every start 0.1 s and 100
// MB.
struct CublasLt {
  // Throws Error(unavailable) where the library or the function is missing.
  LoadedFunction find(const char* name) const {
    void* const address = library ? dlsym(library, name) : nullptr;
    if (!address) throw not_loaded();
    return {address};
  }

  void* library = opened(0);
  decltype(&cublasLtCreate) create = find("cublasLtCreate");
  decltype(&cublasLtDestroy) destroy = find("cublasLtDestroy");
  decltype(&cublasLtGetStatusString) get_status_string = find("cublasLtGetStatusString");
  decltype(&cublasLtGetVersion) get_version = find("cublasLtGetVersion");
  decltype(&cublasLtMatmul) matmul = find("cublasLtMatmul");
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) matmul_algo_config_get_attribute =
      find("cublasLtMatmulAlgoConfigGetAttribute");
  decltype(&cublasLtMatmulAlgoGetHeuristic) matmul_algo_get_heuristic =
      find("cublasLtMatmulAlgoGetHeuristic");
  decltype(&cublasLtMatmulDescCreate) matmul_desc_create = find("cublasLtMatmulDescCreate");
  decltype(&cublasLtMatmulDescDestroy) matmul_desc_destroy = find("cublasLtMatmulDescDestroy");
  decltype(&cublasLtMatmulDescSetAttribute) matmul_desc_set_attribute =
      find("cublasLtMatmulDescSetAttribute");
  decltype(&cublasLtMatmulPreferenceCreate) matmul_preference_create = find("cublasLtMatmulPreferenceCreate");
  decltype(&cublasLtMatmulPreferenceDestroy) matmul_preference_destroy =
      find("cublasLtMatmulPreferenceDestroy");
  decltype(&cublasLtMatmulPreferenceSetAttribute) matmul_preference_set_attribute =
      find("cublasLtMatmulPreferenceSetAttribute");
  decltype(&cublasLtMatrixLayoutCreate) matrix_layout_create = find("cublasLtMatrixLayoutCreate");
  decltype(&cublasLtMatrixLayoutDestroy) matrix_layout_destroy = find("cublasLtMatrixLayoutDestroy");
};

// Loads it at the first call, for the rest of the process.
const CublasLt& cublaslt() {
  static const CublasLt library;
  return library;
}

void check(cublasStatus_t status, std::source_location where = std::source_location::current()) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string place = fmt::format(" (seen in {}, line {})", where.function_name(), where.line());
  if (status == CUBLAS_STATUS_ALLOC_FAILED)
    throw Error(ExitCode::out_of_memory,
                "cuBLASLt: no memory for its own tables{}; lower --bs, or end other programs on the GPU",
                place);
  const ExitCode cause = cause_of_failure();
  throw Error(cause, "cuBLASLt: {}{}{}", cublaslt().get_status_string(status), place, remedy_for(cause));
}

using Operation = Owner<cublasLtMatmulDesc_t, [](auto made) { return cublaslt().matmul_desc_destroy(made); }>;
using Layout =
    Owner<cublasLtMatrixLayout_t, [](auto made) { return cublaslt().matrix_layout_destroy(made); }>;
using Preference =
    Owner<cublasLtMatmulPreference_t, [](auto made) { return cublaslt().matmul_preference_destroy(made); }>;
using Library = std::shared_ptr<std::remove_pointer_t<cublasLtHandle_t>>;  // plans outlive their engine

cudaDataType_t data_type(DType dtype) {
  if (dtype == DType::f32) return CUDA_R_32F;
  if (dtype == DType::f16) return CUDA_R_16F;
  if (dtype == DType::bf16) return CUDA_R_16BF;
  throw std::logic_error("cuBLASLt isn't asked for products of " + std::string(name_of(dtype)));
}

// Row-major; stride 0: contiguous rows.
Layout make_layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride = 0) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublaslt().matrix_layout_create(&made, data_type(dtype), static_cast<std::uint64_t>(columns),
                                        static_cast<std::uint64_t>(rows), stride > 0 ? stride : columns));
  return Layout(made);
}

template <typename T>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(cublaslt().matmul_desc_set_attribute(operation.get(), attribute, &value, sizeof value));
}
template <typename T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  check(cublaslt().matmul_preference_set_attribute(preference.get(), attribute, &value, sizeof value));
}

// CUBLAS_COMPUTE_32F is strict f32; halves are multiplied exactly and accumulated in f32.
//
// cuBLASLt applies its epilogue, a ReLU, to alpha AB + beta C. A column of its D is a row of c, so the mask's
// leading dimension is n. NVIDIA documents a bit per element, but no order of the bits; its own tests read
// bit i % 8 of byte i / 8 of a column for row i (nvmath-python,
// tests/nvmath_tests/linalg/advanced/matmul/test_epilog.py, unpack_bitmask), as masks are here.
cublasLtEpilogue_t epilogue_of(const GemmProblem& problem) {
  if (problem.makes_mask) return problem.bias ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS : CUBLASLT_EPILOGUE_RELU_AUX;
  return problem.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

Operation make_operation(const GemmProblem& problem) {
  const bool tf32 = problem.allow_tf32 && problem.in == DType::f32;
  cublasLtMatmulDesc_t made = nullptr;
  check(cublaslt().matmul_desc_create(&made, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                      CUDA_R_32F));
  Operation operation(made);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, problem.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, problem.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(problem));
  if (problem.bias) set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(problem.out));
  if (problem.makes_mask) set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, problem.n);
  if (problem.has_factor) set(operation, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
  return operation;
}

// Operation and layouts of a product, shared by all its algorithms.
struct Product {
  Product(Library handle, const GemmProblem& wanted)
      : library(std::move(handle)),
        problem(wanted),
        operation(make_operation(wanted)),
        a(wanted.transpose_a ? make_layout(wanted.in, wanted.k, wanted.m, wanted.a_stride)
                             : make_layout(wanted.in, wanted.m, wanted.k, wanted.a_stride)),
        b(wanted.transpose_b ? make_layout(wanted.in, wanted.n, wanted.k)
                             : make_layout(wanted.in, wanted.k, wanted.n)),
        c(make_layout(wanted.out, wanted.m, wanted.n, wanted.c_stride)) {}

  Library library;
  GemmProblem problem;
  Operation operation;
  Layout a, b, c;
};

// Unique name of an algorithm: "cublaslt 66 tile 20 stages 35 split 1 …".
std::string name_of_algorithm(const cublasLtMatmulAlgo_t& algorithm) {
  static constexpr std::array<std::pair<cublasLtMatmulAlgoConfigAttributes_t, const char*>, 9> kParts{
      {{CUBLASLT_ALGO_CONFIG_ID, ""},
       {CUBLASLT_ALGO_CONFIG_TILE_ID, "tile "},
       {CUBLASLT_ALGO_CONFIG_STAGES_ID, "stages "},
       {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, "split "},
       {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, "reduction "},
       {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, "swizzle "},
       {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, "option "},
       {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, "shape "},
       {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, "cluster "}}};
  std::string name = "cublaslt";
  for (const auto& [attribute, part] : kParts) {
    // Some attributes have 2 bytes; the other bytes stay 0.
    std::uint32_t value = 0;
    std::size_t written = 0;
    if (cublaslt().matmul_algo_config_get_attribute(&algorithm, attribute, &value, sizeof value, &written) !=
        CUBLAS_STATUS_SUCCESS) {
      std::uint16_t narrow = 0;
      if (cublaslt().matmul_algo_config_get_attribute(&algorithm, attribute, &narrow, sizeof narrow,
                                                      &written) != CUBLAS_STATUS_SUCCESS)
        continue;  // this version lacks the attribute
      value = narrow;
    }
    name += fmt::format(" {}{}", part, value);
  }
  return name;
}

GemmPlan plan_of(const std::shared_ptr<const Product>& product,
                 const cublasLtMatmulHeuristicResult_t& chosen) {
  return {name_of_algorithm(chosen.algo), chosen.workspaceSize,
          [=](cudaStream_t stream, const GemmOperands& operands, std::byte* workspace) {
            const Product& p = *product;
            if (p.problem.bias) set(p.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
            if (p.problem.makes_mask)
              set(p.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.relu_mask);
            const bool adds = p.problem.adds;
            const float one = 1, beta = adds ? 1 : 0;
            check(cublaslt().matmul(p.library.get(), p.operation.get(),
                                    p.problem.has_factor ? operands.factor : &one, operands.b, p.b.get(),
                                    operands.a, p.a.get(), p.problem.has_factor ? operands.zero : &beta,
                                    adds ? operands.added : operands.c, p.c.get(), operands.c, p.c.get(),
                                    &chosen.algo, workspace, chosen.workspaceSize, stream));
          }};
}

constexpr int kAskedAlgorithms = 8;

// The library's algorithms that accumulate in f32 however k is split, best first. Buffers begin at multiples
// of 64 bytes (views of gradients in a bucket).
std::vector<cublasLtMatmulHeuristicResult_t> algorithms_for(const Product& p, std::size_t workspace_limit) {
  constexpr std::uint32_t kAlignmentBytes = 64;
  constexpr std::uint32_t kReductions =
      CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  // Heuristics derive the alignment of bias and mask from their address, which isn't known yet.
  if (p.problem.bias) set(p.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, std::uintptr_t{kAlignmentBytes});
  if (p.problem.makes_mask)
    set(p.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, std::uintptr_t{kAlignmentBytes});
  cublasLtMatmulPreference_t made = nullptr;
  check(cublaslt().matmul_preference_create(&made));
  const Preference preference(made);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_limit});
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kReductions);
  for (const auto attribute :
       std::array{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference, attribute, kAlignmentBytes);
  std::vector<cublasLtMatmulHeuristicResult_t> results(kAskedAlgorithms);
  int found = 0;
  const cublasStatus_t status = cublaslt().matmul_algo_get_heuristic(
      p.library.get(), p.operation.get(), p.b.get(), p.a.get(), p.c.get(), p.c.get(), preference.get(),
      kAskedAlgorithms, results.data(), &found);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status);
  results.resize(static_cast<std::size_t>(found));
  std::erase_if(results, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
  return results;
}

}  // namespace

std::string gemm_library() {  // 130100: 13.1.0 (cublas_api.h)
  const std::size_t version = cublaslt().get_version();
  return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

bool has_gemm_library(bool load) {
  return opened(load ? 0 : RTLD_NOLOAD) != nullptr;
}

GemmEngine make_gemm_engine() {
  cublasLtHandle_t made = nullptr;
  check(cublaslt().create(&made));
  return {.library = gemm_library(),
          .plans = [library = Library(made, cublaslt().destroy)](
                       const GemmProblem& problem, std::size_t workspace_limit, std::size_t most) {
            const auto product = std::make_shared<const Product>(library, problem);
            std::vector<GemmPlan> plans;
            for (const auto& result : algorithms_for(*product, workspace_limit))
              if (plans.size() < most) plans.push_back(plan_of(product, result));
            return plans;
          }};
}

}  // namespace plumb::cuda
