// Our own kernels for some convolutions among a library's engines.
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/cuda/own/block_end.h"
#include "kernels/cuda/own/stem.h"
#include "kernels/cuda/own/window.h"
#include "kernels/cuda/vendors/conv.h"

namespace plumb::cuda {
namespace {

// A library's engines, and our Plan for the problems that it `suits`.
template <typename Plan, typename... Arguments>
class OwnBeside final : public ConvEngine {
 public:
  // `before`: the number of the library's engines that are listed before ours; without tuning the first
  // engine is used. `arguments`: of the plan, behind the problem.
  OwnBeside(std::unique_ptr<ConvEngine> convolutions, bool (*suits)(const ConvProblem&), std::size_t before,
            Arguments... arguments)
      : convolutions_(std::move(convolutions)), suits_(suits), before_(before), arguments_(arguments...) {}
  std::string library() const override { return convolutions_->library(); }
  std::unique_ptr<ConvCandidates> candidates(const ConvProblem& problem,
                                             std::size_t workspace_limit) override {
    std::vector<std::unique_ptr<ConvPlan>> own;
    if (suits_(problem))
      own.push_back(
          std::apply([&](auto... all) { return std::make_unique<Plan>(problem, all...); }, arguments_));
    if (!own.empty() && own.front()->workspace_bytes() > workspace_limit) own.clear();
    return list_among(convolutions_->candidates(problem, workspace_limit), std::move(own), before_);
  }

 private:
  std::unique_ptr<ConvEngine> convolutions_;
  bool (*suits_)(const ConvProblem&);
  std::size_t before_;
  std::tuple<Arguments...> arguments_;
};

// A ResNet's first convolution.
StemShape stem_shape_of(const ConvProblem& p) {
  return {.n = p.n, .h = p.h, .w = p.w, .out_h = p.out_h, .out_w = p.out_w};
}

class StemPlan final : public ConvPlan {
 public:
  StemPlan(const ConvProblem& problem, int multiprocessors)
      : problem_(problem), shape_(stem_shape_of(problem)), multiprocessors_(multiprocessors) {}

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

// 3x3 convolutions of 64 channels.
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

// The gradient of a block's end.
bool is_block_end(const ConvProblem& p) {
  return p.pass == ConvPass::backward_data && p.fusion.completes_gradient && p.dtype != DType::f32 &&
         p.layout == TensorLayout::nhwc && p.kernel == 1 && p.stride == 1 && p.padding == 0 &&
         p.groups == 1 && p.c % kBlockEndChannels == 0 && p.out_c % kBlockEndStep == 0 &&
         (p.fusion.added_stride == 1 || (p.fusion.added_stride == 2 && p.fusion.sums_for_norms < 2));
}

class BlockEndPlan final : public ConvPlan {
 public:
  explicit BlockEndPlan(const ConvProblem& p)
      : dtype_(p.dtype),
        norms_(p.fusion.sums_for_norms),
        sums_(norms_ > 0 ? norms_ + 1 : p.fusion.sums_gradient),
        shape_{.pixels = p.n * p.h * p.w,
               .channels = static_cast<int>(p.c),
               .outputs = static_cast<int>(p.out_c),
               .added_grid = {static_cast<int>(p.h), static_cast<int>(p.w), p.fusion.added_stride - 1}} {}

  std::size_t workspace_bytes() const override { return block_end_workspace(shape_, sums_); }
  std::string engine() const override { return kOwnKernel; }
  void run(cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) const override {
    BlockEndOperands end{.d_out = operands[0],
                         .weight = operands[1],
                         .added = operands[3],
                         .mask = operands[4],
                         .d_in = operands[2]};
    const auto floats = [&](std::size_t i) { return reinterpret_cast<float*>(operands[i]); };
    // From its mean on, in the order of ConvBackwardData's operands.
    const auto norm_at = [&](std::size_t mean, float* coefficients) {
      return NormBackward{.scale = floats(mean + 2),
                          .mean = floats(mean),
                          .inv_std = floats(mean + 1),
                          .d_scale = floats(mean + 3),
                          .d_bias = floats(mean + 4),
                          .coefficients = coefficients};
    };
    if (sums_ > 0) end.partials = reinterpret_cast<float*>(workspace);
    if (sums_ == 1) end.norm.d_bias = floats(5);
    if (norms_ > 0) {
      end.norm_in = operands[5];
      end.norm = norm_at(6, floats(11));
    }
    if (norms_ > 1) {
      end.shortcut_in = operands[12];
      end.shortcut = norm_at(13, floats(11) + 3 * std::ptrdiff_t{shape_.channels});
    }
    launch_block_end(dtype_, shape_, end, stream);
  }

 private:
  DType dtype_;
  int norms_, sums_;  // to sum for; what is summed
  BlockEndShape shape_;
};

}  // namespace

std::unique_ptr<ConvEngine> with_stem_kernels(std::unique_ptr<ConvEngine> convolutions, int multiprocessors) {
  bool (*const suits)(const ConvProblem&) = is_stem;  // one of two functions of this name
  return std::make_unique<OwnBeside<StemPlan, int>>(std::move(convolutions), suits, 0, multiprocessors);
}

std::unique_ptr<ConvEngine> with_window_kernels(std::unique_ptr<ConvEngine> convolutions,
                                                int multiprocessors) {
  return std::make_unique<OwnBeside<WindowPlan, int>>(std::move(convolutions), is_window, 1, multiprocessors);
}

std::unique_ptr<ConvEngine> with_block_end_kernels(std::unique_ptr<ConvEngine> convolutions) {
  return std::make_unique<OwnBeside<BlockEndPlan>>(std::move(convolutions), is_block_end, 0);
}

}  // namespace plumb::cuda
