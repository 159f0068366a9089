#include "fused_patterns.h"

#include <algorithm>
#include <array>

namespace plumb::cuda {
namespace {

constexpr std::array<const char*, kFusedGraphs.size()> kNames{
    "conv, statistics", "normalize, conv, statistics", "normalize, weight gradient",
    "data gradient, norm backward"};

// The input or the output has more than 2^31 elements.
bool has_large_tensor(const ConvProblem& p) {
  return p.n * std::max(p.h * p.w * p.c, p.out_h * p.out_w * p.out_c) > std::int64_t{1} << 31;
}

}  // namespace

const char* name_of(FusedGraph pattern) {
  return kNames.at(static_cast<std::size_t>(pattern));
}

ConvPass plain_pass(FusedGraph pattern) {
  switch (pattern) {
    case FusedGraph::normalized_input_weights:
      return ConvPass::backward_weights;
    case FusedGraph::norm_backward_data:
      return ConvPass::backward_data;
    default:
      return ConvPass::forward;
  }
}

std::optional<ConvProblem> fused(FusedGraph pattern, ConvProblem plain) {
  const bool is_usual = plain.kernel == 1 || plain.kernel == 3;
  if (plain.pass != plain_pass(pattern) || !is_usual || plain.groups != 1) return std::nullopt;
  plain.scale_shift_dtype = plain.dtype;
  switch (pattern) {
    case FusedGraph::statistics:
      plain.fusion = {.gathers_statistics = true};
      break;
    case FusedGraph::normalized_input:
      plain.fusion = {.normalizes_input = true, .gathers_statistics = true};
      break;
    case FusedGraph::normalized_input_weights:
      plain.fusion = {.normalizes_input = true};
      break;
    case FusedGraph::norm_backward_data:
      plain.pass = ConvPass::norm_backward_data;
      break;
  }
  return plain;
}

bool lacks_engine(int compute_capability, const ConvProblem& problem) {
  if (is_stem(problem) && problem.fusion.gathers_statistics) return true;  // our own kernels do
  return compute_capability == 90 && is_fused(problem) && has_large_tensor(problem);
}

}  // namespace plumb::cuda
