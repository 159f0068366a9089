// Decides which fused engines pay. A table (fusion.h) can't know, so each pattern is compared with the plain
// instructions, layer by layer. Pure: the caller supplies the cost of an instruction.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/program/describe.h"
#include "kernels/program/program.h"
#include "kernels/program/targets.h"
#include "models/graph.h"

namespace plumb::cuda {

struct InstructionCost {
  double seconds = 0;
  std::string failure;  // why no engine computes the instruction; empty if one does
};
using CostOf = std::function<InstructionCost(const Program&, const Instruction&)>;

// Greedy, pattern by pattern in the order of the Graph. A convolution drops a fused pattern if the whole
// training step then has fewer instructions without an engine, or equally many and takes less time. The cost
// of an instruction must depend only on the work it does, so that layers of the same shape come out alike.
std::vector<PlainLayer> choose_fusion(const Graph& graph, const DescribeOptions& options,
                                      const DeviceLimits& limits, const CostOf& cost_of);

}  // namespace plumb::cuda
