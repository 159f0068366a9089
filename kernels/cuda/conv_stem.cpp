// Our own kernels for a ResNet's first convolution beside a library's engines.
#include <utility>

#include "kernels/cuda/conv.h"
#include "kernels/cuda/own_beside.h"
#include "kernels/cuda/stem.h"

namespace plumb::cuda {
namespace {

StemShape shape_of(const ConvProblem& p) {
  return {.n = p.n, .h = p.h, .w = p.w, .out_h = p.out_h, .out_w = p.out_w};
}

class StemPlan final : public ConvPlan {
 public:
  StemPlan(const ConvProblem& problem, int multiprocessors)
      : problem_(problem), shape_(shape_of(problem)), multiprocessors_(multiprocessors) {}

  std::size_t workspace_bytes() const override {
    if (problem_.pass == ConvPass::backward_weights) return stem_weights_workspace(shape_, multiprocessors_);
    return problem_.fusion.gathers_statistics ? stem_forward_workspace(shape_, multiprocessors_) : 0;
  }
  std::string engine() const override { return kOwnKernel; }
  void run(cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) const override {
    auto* const partials = reinterpret_cast<float*>(workspace);
    if (problem_.pass == ConvPass::backward_weights)
      return launch_stem_backward_weights(problem_.dtype, shape_, multiprocessors_, operands[0], operands[1],
                                          partials, operands[2], stream);
    auto* const sums = problem_.fusion.gathers_statistics ? reinterpret_cast<float*>(operands[3]) : nullptr;
    launch_stem_forward(problem_.dtype, shape_, multiprocessors_, operands[0], operands[1], operands[2], sums,
                        partials, stream);
  }

 private:
  ConvProblem problem_;
  StemShape shape_;
  int multiprocessors_;
};

}  // namespace

std::unique_ptr<ConvEngine> with_stem_kernels(std::unique_ptr<ConvEngine> convolutions, int multiprocessors) {
  return std::make_unique<OwnBeside>(
      std::move(convolutions), [multiprocessors](const ConvProblem& problem) -> std::unique_ptr<ConvPlan> {
        return is_stem(problem) ? std::make_unique<StemPlan>(problem, multiprocessors) : nullptr;
      });
}

}  // namespace plumb::cuda
