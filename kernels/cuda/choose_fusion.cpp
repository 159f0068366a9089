#include "kernels/cuda/choose_fusion.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "kernels/cuda/fusion.h"

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
  if (pattern == FusedPattern::statistics) return layer.forward.gathers_statistics;
  if (pattern == FusedPattern::norm_backward_data) return layer.backward_through_norm;
  if (pattern == FusedPattern::residual_input) return layer.forward.adds_residual;
  return layer.forward.normalizes_input && !layer.forward.adds_residual;
}

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
  DescribeOptions chosen = options;
  ProgramCost cost = cost_of_program(cuda::describe(graph, chosen, limits), cost_of);
  // Statistics come last because the other patterns need the statistics of the preceding layer: none of them
  // is dropped with the statistics for a fault of its own.
  for (const FusedPattern pattern : {FusedPattern::residual_input, FusedPattern::normalized_input,
                                     FusedPattern::norm_backward_data, FusedPattern::statistics}) {
    for (std::size_t op = 0; op < graph.ops.size(); ++op) {
      if (!uses(plan_fusion(graph, chosen, limits)[op], pattern)) continue;
      DescribeOptions without = chosen;
      without.plain.push_back({op, pattern, ""});
      const ProgramCost plain = cost_of_program(cuda::describe(graph, without, limits), cost_of);
      if (!(plain < cost)) continue;
      without.plain.back().reason = reason_for(cost, plain);
      chosen = std::move(without);
      cost = plain;
    }
  }
  return chosen.plain;
}

}  // namespace plumb::cuda
