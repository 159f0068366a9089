#include "kernels/cuda/plan/choose_fusion.h"

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
  if (const auto* product = std::get_if<UnstoredConv>(&layer.how))
    return pattern == (product->norm_in_front ? FusedPattern::product_norm : FusedPattern::product_shortcut);
  const auto* conv = std::get_if<FusedConv>(&layer.how);
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

class Chooser {
 public:
  Chooser(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits,
          const CostOf& cost_of)
      : graph_(graph), limits_(limits), cost_of_(cost_of), chosen_(choice_of(options)) {}

  // The layers that are faster without the pattern, or have no other way.
  void give_up(FusedPattern pattern) {
    for (std::size_t op = 0; op < graph_.ops.size(); ++op) {
      if (!is_used(chosen_, op, pattern)) continue;
      Choice without = choice_without(chosen_, op, pattern);
      if (without.cost < chosen_.cost) chosen_ = std::move(without);
    }
  }
  std::vector<PlainLayer> plain() const { return chosen_.options.plain; }

 private:
  Choice choice_of(DescribeOptions options) const {
    ProgramCost cost = cost_of_program(cuda::describe(graph_, options, limits_), cost_of_);
    return {std::move(options), std::move(cost)};
  }
  bool is_used(const Choice& choice, std::size_t op, FusedPattern pattern) const {
    return uses(plan_fusion(graph_, choice.options, limits_)[op], pattern);
  }
  Choice choice_without(const Choice& with, std::size_t op, FusedPattern pattern) const {
    DescribeOptions options = with.options;
    options.plain.push_back({op, pattern, ""});
    Choice without = choice_of(std::move(options));
    without.options.plain.back().reason = reason_for(with.cost, without.cost);
    return without;
  }

  const Graph& graph_;
  const DeviceLimits& limits_;
  const CostOf& cost_of_;
  Choice chosen_;
};

}  // namespace

std::vector<PlainLayer> choose_fusion(const Graph& graph, const DescribeOptions& options,
                                      const DeviceLimits& limits, const CostOf& cost_of) {
  Chooser chooser(graph, options, limits, cost_of);
  // A block's end does without its convolution's output only where its gradient is summed. Statistics come
  // last because the other patterns need the statistics of the preceding layer: none of them is dropped with
  // the statistics for a fault of its own.
  for (const FusedPattern pattern :
       {FusedPattern::product_shortcut, FusedPattern::product_norm, FusedPattern::block_end_sums,
        FusedPattern::block_end_gradient, FusedPattern::normalized_input, FusedPattern::norm_backward_data,
        FusedPattern::statistics})
    chooser.give_up(pattern);
  return chooser.plain();
}

}  // namespace plumb::cuda
