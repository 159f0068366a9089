// Our own kernel for 3x3 convolutions of 64 channels among a library's engines.
#include <utility>

#include "kernels/cuda/conv.h"
#include "kernels/cuda/own_beside.h"
#include "kernels/cuda/window.h"

namespace plumb::cuda {
namespace {

bool is_window(const ConvProblem& p) {
  return p.dtype != DType::f32 && p.layout == TensorLayout::nhwc && p.c == kWindowChannels &&
         p.out_c == kWindowChannels && p.kernel == kWindow && p.stride == 1 && p.padding == 1 &&
         p.groups == 1 && p.h * p.w <= kMostWindowPixels && !p.fusion.normalizes_input &&
         !p.fusion.completes_gradient;
}

class WindowPlan final : public ConvPlan {
 public:
  WindowPlan(const ConvProblem& problem, int multiprocessors)
      : problem_(problem),
        shape_{.n = problem.n, .h = problem.h, .w = problem.w},
        multiprocessors_(multiprocessors) {}

  std::size_t workspace_bytes() const override {
    if (problem_.pass == ConvPass::backward_weights)
      return window_weights_workspace(shape_, multiprocessors_);
    const bool leaves_sums =
        problem_.fusion.gathers_statistics || problem_.pass == ConvPass::norm_backward_data;
    return leaves_sums ? window_workspace(shape_, multiprocessors_) : 0;
  }
  std::string engine() const override { return kOwnKernel; }
  void run(cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) const override {
    auto* const partials = reinterpret_cast<float*>(workspace);
    const auto floats = [&](std::size_t i) { return reinterpret_cast<float*>(operands[i]); };
    if (problem_.pass == ConvPass::forward)
      return launch_window_forward(problem_.dtype, shape_, multiprocessors_, operands[0], operands[1],
                                   operands[2], problem_.fusion.gathers_statistics ? floats(3) : nullptr,
                                   partials, stream);
    if (problem_.pass == ConvPass::backward_weights)
      return launch_window_backward_weights(problem_.dtype, shape_, multiprocessors_, operands[0],
                                            operands[1], partials, operands[2], stream);
    WindowNorm norm;
    std::size_t d_in = 2;
    if (problem_.pass == ConvPass::norm_backward_data) {  // in the order of ConvNormBackwardData's operands
      norm = {.in = operands[2],
              .bias = floats(3),
              .norm = {.scale = floats(6),
                       .mean = floats(4),
                       .inv_std = floats(5),
                       .d_scale = floats(8),
                       .d_bias = floats(9),
                       .coefficients = floats(10)}};
      d_in = 7;
    }
    launch_window_backward_data(problem_.dtype, shape_, multiprocessors_, operands[0], operands[1],
                                operands[d_in], norm, partials, stream);
  }

 private:
  ConvProblem problem_;
  WindowShape shape_;
  int multiprocessors_;
};

}  // namespace

std::unique_ptr<ConvEngine> with_window_kernels(std::unique_ptr<ConvEngine> convolutions,
                                                int multiprocessors) {
  return std::make_unique<OwnBeside>(
      std::move(convolutions),
      [multiprocessors](const ConvProblem& problem) -> std::unique_ptr<ConvPlan> {
        return is_window(problem) ? std::make_unique<WindowPlan>(problem, multiprocessors) : nullptr;
      },
      1);
}

}  // namespace plumb::cuda
