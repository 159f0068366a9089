// In place of cuDNN and cuBLASLt: they offer no engine, so a program with this holds our own kernels only.
#include "kernels/cuda/vendors/conv.h"
#include "kernels/cuda/vendors/dense.h"

namespace plumb::cuda {
std::string conv_library() {
  return "a program without cuDNN";
}
std::string gemm_library() {
  return "without cuBLASLt";
}
bool has_gemm_library(bool) {
  return true;
}
ConvEngine make_conv_engine(const ConvEngineOptions&) {
  return {.library = conv_library(), .candidates = [](const ConvProblem&, std::size_t) {
            return ConvCandidates{.engines = {}, .failure = "this program holds own kernels only"};
          }};
}
GemmEngine make_gemm_engine() {
  return {.library = gemm_library(),
          .plans = [](const GemmProblem&, std::size_t, std::size_t) { return std::vector<GemmPlan>(); }};
}

}  // namespace plumb::cuda
