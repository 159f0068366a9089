// Our own kernels for a ResNet's first convolution among a library's engines.
#include <optional>
#include <utility>

#include "kernels/cuda/own/conv.h"
#include "kernels/cuda/vendors/conv.h"

namespace plumb::cuda {
namespace {

using Addresses = std::span<std::byte* const>;

float* as_floats(std::byte* address) {
  return reinterpret_cast<float*>(address);
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

}  // namespace

ConvEngine with_stem_kernels(ConvEngine convolutions, int multiprocessors) {
  convolutions.candidates = [=, others = std::move(convolutions.candidates)](const ConvProblem& problem,
                                                                             std::size_t workspace_limit) {
    const std::optional<ConvPlan> plan = stem_plan(problem, multiprocessors);
    ConvCandidates listed = others(problem, workspace_limit);
    if (plan && plan->workspace_bytes <= workspace_limit) listed.insert(0, {*plan});
    return listed;
  };
  return convolutions;
}

}  // namespace plumb::cuda
