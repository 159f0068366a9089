// In place of cuDNN and cuBLASLt: they offer no engine, so a program with this holds our own kernels only.
#include "kernels/cuda/vendors/conv.h"
#include "kernels/cuda/vendors/dense.h"

namespace plumb::cuda {
namespace {

class NoConvolutions final : public ConvEngine {
 public:
  std::string library() const override { return conv_library(); }
  std::unique_ptr<ConvCandidates> candidates(const ConvProblem&, std::size_t) override {
    return std::make_unique<NoCandidates>("this program holds own kernels only");
  }
};

class NoProducts final : public GemmEngine {
 public:
  std::string library() const override { return gemm_library(); }
  std::vector<std::unique_ptr<GemmPlan>> plans(const GemmProblem&, std::size_t, std::size_t) override {
    return {};
  }
};

}  // namespace

std::string conv_library() {
  return "a program without cuDNN";
}
std::string gemm_library() {
  return "without cuBLASLt";
}
bool has_gemm_library(bool) {
  return true;
}
std::unique_ptr<ConvEngine> make_conv_engine(const ConvEngineOptions&) {
  return std::make_unique<NoConvolutions>();
}
std::unique_ptr<GemmEngine> make_gemm_engine() {
  return std::make_unique<NoProducts>();
}

}  // namespace plumb::cuda
