// Interface to matrix products: cuBLASLt on a GPU (dense_cublaslt.cpp), plain loops on the emulated one
// (tests/cuda_host).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/program.h"

namespace plumb::cuda {

// c[m, n] = op(a)[m, k] * op(b)[k, n] (+ bias[n]) (+ added[m, n]), all row-major, f32 accumulation. op is an
// optional transpose: a is then stored [k, m], b [n, k]. A stride is the distance between rows in elements;
// 0: contiguous rows.
struct GemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t a_stride = 0, c_stride = 0;
  DType in = DType::f32;   // of a and b
  DType out = DType::f32;  // of c
  bool bias = false;       // [n], in c's dtype: cuBLASLt has no other (cublasLt.h, …_DESC_BIAS_DATA_TYPE)
  bool allow_tf32 = false;
  // Adds `added`, which is like c. Then elements become 0 where their bit in relu_mask is 0: bit j of byte i
  // is that of element 8 i + j. n must be a multiple of kMaskColumns, and bias false.
  bool adds_and_masks = false;
};
// cuBLASLt wants a mask's leading dimension in 128s (cublasLt.h, …_DESC_EPILOGUE_AUX_LD).
inline constexpr std::int64_t kMaskColumns = 128;

struct GemmOperands {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  const std::byte* bias = nullptr;
  const std::byte* added = nullptr;
  const std::byte* relu_mask = nullptr;
  std::byte* c = nullptr;
};

class GemmPlan {
 public:
  virtual ~GemmPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual std::string engine() const = 0;  // the library's name for it, the same in every process
  virtual void run(cudaStream_t stream, const GemmOperands& operands, std::byte* workspace) const = 0;
};

class GemmEngine {
 public:
  virtual ~GemmEngine() = default;
  virtual std::string library() const = 0;  // with its version: "cuBLASLt 13.1.0"
  // At most `most` algorithms, best first by the library's heuristics; none if no algorithm fits.
  virtual std::vector<std::unique_ptr<GemmPlan>> plans(const GemmProblem& problem,
                                                       std::size_t workspace_limit, std::size_t most) = 0;
  // The first plan. Throws Error(internal) naming the product if there is none.
  std::unique_ptr<GemmPlan> plan(const GemmProblem& problem, std::size_t workspace_limit);
};
// The library that makes engines, with its version: "cuBLASLt 13.1.0".
std::string gemm_library();
bool has_gemm_library(bool load);  // whether it is loaded, or with `load` can be
std::unique_ptr<GemmEngine> make_gemm_engine();

}  // namespace plumb::cuda
