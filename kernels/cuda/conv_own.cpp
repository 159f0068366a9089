// Our own kernels for some convolutions among a library's engines.
#include <optional>
#include <utility>

#include "kernels/cuda/own/block_end.h"
#include "kernels/cuda/own/stem.h"
#include "kernels/cuda/vendors/conv.h"

namespace plumb::cuda {
namespace {

using Addresses = std::span<std::byte* const>;

float* as_floats(std::byte* address) {
  return reinterpret_cast<float*>(address);
}

// Puts what own(problem) plans, if anything, before a library's engines; without tuning the first engine is
// used.
template <typename Own>
ConvEngine with_own(ConvEngine convolutions, const Own& own) {
  convolutions.candidates = [=, others = std::move(convolutions.candidates)](const ConvProblem& problem,
                                                                             std::size_t workspace_limit) {
    const std::optional<ConvPlan> plan = own(problem);
    ConvCandidates listed = others(problem, workspace_limit);
    if (plan && plan->workspace_bytes <= workspace_limit) listed.insert(0, {*plan});
    return listed;
  };
  return convolutions;
}

// A ResNet's first convolution.
std::optional<ConvPlan> stem_plan(const ConvProblem& p, int multiprocessors) {
  if (!is_stem(p)) return {};
  const StemShape shape{.n = p.n, .h = p.h, .w = p.w, .out_h = p.out_h, .out_w = p.out_w};
  const bool sums = p.fusion.gathers_statistics;
  if (p.pass == ConvPass::backward_weights)
    return ConvPlan{kOwnKernel, stem_weights_workspace(shape, multiprocessors),
                    [=, dtype = p.dtype](cudaStream_t stream, Addresses operands, std::byte* workspace) {
                      launch_stem_backward_weights(dtype, shape, multiprocessors, operands[0], operands[1],
                                                   as_floats(workspace), operands[2], stream);
                    }};
  return ConvPlan{kOwnKernel, sums ? stem_forward_workspace(shape, multiprocessors) : 0,
                  [=, dtype = p.dtype](cudaStream_t stream, Addresses operands, std::byte* workspace) {
                    launch_stem_forward(dtype, shape, multiprocessors, operands[0], operands[1], operands[2],
                                        sums ? as_floats(operands[3]) : nullptr, as_floats(workspace),
                                        stream);
                  }};
}

// The gradient of a block's end.
bool is_block_end(const ConvProblem& p) {
  return p.pass == ConvPass::backward_data && p.fusion.completes_gradient && p.dtype != DType::f32 &&
         p.layout == TensorLayout::nhwc && p.kernel == 1 && p.stride == 1 && p.padding == 0 &&
         p.groups == 1 && p.c % kBlockEndChannels == 0 && p.out_c % kBlockEndStep == 0 &&
         (p.fusion.added_stride == 1 || (p.fusion.added_stride == 2 && p.fusion.sums_for_norms < 2));
}

// norms, sums: to sum for; what is summed.
void run_block_end(DType dtype, const BlockEndShape& shape, int norms, int sums, cudaStream_t stream,
                   Addresses operands, float* partials) {
  EndAddresses end{.left = operands[0],
                   .weight = operands[1],
                   .added = operands[3],
                   .mask = operands[4],
                   .out = operands[2],
                   .partials = partials};
  NormBackward norm, shortcut;
  const auto floats = [&](std::size_t i) { return as_floats(operands[i]); };
  // From its mean on, in the order of ConvBackwardData's operands.
  const auto norm_at = [&](std::size_t mean, float* coefficients) {
    return NormBackward{.scale = floats(mean + 2),
                        .mean = floats(mean),
                        .inv_std = floats(mean + 1),
                        .d_scale = floats(mean + 3),
                        .d_bias = floats(mean + 4),
                        .coefficients = coefficients};
  };
  if (sums == 1) norm.d_bias = floats(5);
  if (norms > 0) {
    end.norm_in = operands[5];
    norm = norm_at(6, floats(11));
  }
  if (norms > 1) {
    end.shortcut_in = operands[12];
    shortcut = norm_at(13, floats(11) + 3 * std::ptrdiff_t{shape.channels});
  }
  launch_block_end(dtype, shape, end, norm, shortcut, stream);
}

std::optional<ConvPlan> block_end_plan(const ConvProblem& p) {
  if (!is_block_end(p)) return {};
  const int norms = p.fusion.sums_for_norms, sums = norms > 0 ? norms + 1 : p.fusion.sums_gradient;
  const BlockEndShape shape{
      .pixels = p.n * p.h * p.w,
      .channels = static_cast<int>(p.c),
      .outputs = static_cast<int>(p.out_c),
      .added_grid = {static_cast<int>(p.h), static_cast<int>(p.w), p.fusion.added_stride - 1}};
  return ConvPlan{kOwnKernel, block_end_workspace(shape, sums),
                  [=, dtype = p.dtype](cudaStream_t stream, Addresses operands, std::byte* workspace) {
                    run_block_end(dtype, shape, norms, sums, stream, operands, as_floats(workspace));
                  }};
}

}  // namespace

ConvEngine with_stem_kernels(ConvEngine convolutions, int multiprocessors) {
  return with_own(std::move(convolutions),
                  [=](const ConvProblem& problem) { return stem_plan(problem, multiprocessors); });
}

ConvEngine with_block_end_kernels(ConvEngine convolutions) {
  return with_own(std::move(convolutions), block_end_plan);
}

}  // namespace plumb::cuda
