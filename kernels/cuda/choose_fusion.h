// Which fused engines pay: a table (fusion.h) can't know, so each pattern is held against the plain steps,
// layer by layer. Pure: whoever calls says what a step costs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/describe.h"
#include "kernels/program.h"
#include "kernels/targets.h"
#include "models/graph.h"

namespace plumb::cuda {

struct StepCost {
  double seconds = 0;
  std::string failure;  // why nothing computes the step; empty if something does
};
using CostOf = std::function<StepCost(const Program&, const Step&)>;

// Greedy, pattern by pattern in the order of the Graph: a convolution gives up a fused pattern if the whole
// training step then has fewer steps that nothing computes, or as many and takes less time. The cost of a
// step must depend on nothing but what it computes: layers of the same shape then come out alike.
std::vector<PlainLayer> choose_fusion(const Graph& graph, const DescribeOptions& options,
                                      const DeviceLimits& limits, const CostOf& cost_of);

}  // namespace plumb::cuda
