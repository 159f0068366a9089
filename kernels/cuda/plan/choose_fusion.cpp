// Decides which fused engines pay. A table (fusion.h) can't know, so each pattern is compared with the plain
// instructions, layer by layer.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "kernels/cuda/plan/fusion.h"

namespace plumb::cuda {
namespace {

struct Failure {
  std::string instruction, why;
  bool operator==(const Failure&) const = default;
};

struct ProgramCost {
  std::vector<Failure> failures;
  double seconds = 0;
  bool operator<(const ProgramCost& other) const {
    return std::pair(failures.size(), seconds) < std::pair(other.failures.size(), other.seconds);
  }
};

ProgramCost cost_of_program(const Program& program, const CostOf& cost_of) {
  ProgramCost sum;
  for (const Instruction& instruction : program.instructions) {
    const InstructionCost cost = cost_of(program, instruction);
    if (cost.failure.empty())
      sum.seconds += cost.seconds;
    else
      sum.failures.push_back({instruction.name, cost.failure});
  }
  return sum;
}

bool uses(const LayerFusion& layer, FusedPattern pattern) {
  if (const auto* product = std::get_if<UnstoredConv>(&layer))
    return pattern == (product->norm_in_front ? FusedPattern::product_norm : FusedPattern::product_shortcut);
  const auto* conv = std::get_if<FusedConv>(&layer);
  if (!conv) return false;
  const auto* completed = std::get_if<FusedConv::CompletedGradient>(&conv->data_gradient);
  switch (pattern) {
    case FusedPattern::statistics:
      return conv->gathers_statistics;
    case FusedPattern::normalized_input:
      return conv->normalizes.has_value();
    case FusedPattern::norm_backward_data:
      return std::holds_alternative<FusedConv::ThroughNorm>(conv->data_gradient);
    case FusedPattern::block_end_gradient:
      return completed != nullptr;
    case FusedPattern::block_end_sums:
      return completed && completed->sums;
    default:
      return false;
  }
}

// Options with the cost of their Program.
struct Choice {
  DescribeOptions options;
  ProgramCost cost;
};

// Why the layer runs as plain instructions: what fails with its fused one only, or the time.
std::string reason_for(const ProgramCost& fused, const ProgramCost& plain) {
  if (plain.failures.size() < fused.failures.size())
    return std::ranges::find_if(fused.failures,
                                [&](const Failure& failure) {
                                  return std::ranges::find(plain.failures, failure) == plain.failures.end();
                                })
        ->why;
  return fmt::format("plain instructions are {:.3f} ms faster", 1e3 * (fused.seconds - plain.seconds));
}

}  // namespace

std::vector<PlainLayer> choose_fusion(const Graph& graph, const DescribeOptions& options,
                                      const DeviceLimits& limits, const CostOf& cost_of) {
  const auto choice_of = [&](DescribeOptions chosen) {
    ProgramCost cost = cost_of_program(cuda::describe(graph, chosen, limits), cost_of);
    return Choice{std::move(chosen), std::move(cost)};
  };
  Choice chosen = choice_of(options);
  // A block's end does without its convolution's output only where its gradient is summed. Statistics come
  // last because the other patterns need the statistics of the preceding layer: none of them is dropped with
  // the statistics for a fault of its own.
  for (const FusedPattern pattern :
       {FusedPattern::product_shortcut, FusedPattern::product_norm, FusedPattern::block_end_sums,
        FusedPattern::block_end_gradient, FusedPattern::normalized_input, FusedPattern::norm_backward_data,
        FusedPattern::statistics})
    for (std::size_t op = 0; op < graph.ops.size(); ++op) {
      if (!uses(plan_fusion(graph, chosen.options, limits)[op], pattern)) continue;
      DescribeOptions plainer = chosen.options;
      plainer.plain.push_back({op, pattern, ""});
      Choice without = choice_of(std::move(plainer));
      if (!(without.cost < chosen.cost)) continue;
      without.options.plain.back().reason = reason_for(chosen.cost, without.cost);
      chosen = std::move(without);
    }
  return chosen.options.plain;
}

}  // namespace plumb::cuda
