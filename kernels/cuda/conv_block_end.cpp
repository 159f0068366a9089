// Our own kernel for the gradient of a block's end beside a library's engines.
#include <utility>

#include "kernels/cuda/block_end.h"
#include "kernels/cuda/conv.h"
#include "kernels/cuda/own_beside.h"

namespace plumb::cuda {
namespace {

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

std::unique_ptr<ConvEngine> with_block_end_kernels(std::unique_ptr<ConvEngine> convolutions) {
  return std::make_unique<OwnBeside>(
      std::move(convolutions), [](const ConvProblem& problem) -> std::unique_ptr<ConvPlan> {
        return is_block_end(problem) ? std::make_unique<BlockEndPlan>(problem) : nullptr;
      });
}

}  // namespace plumb::cuda
