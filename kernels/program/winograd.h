// Which 3x3 convolutions Winograd's algorithm can compute on CPUs, what a pass takes, and where that is less
// than directly. Products are fp32 in every precision. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/program/program.h"
#include "kernels/program/targets.h"
#include "kernels/program/winograd_plan.h"
#include "models/graph.h"

namespace plumb {

// Instruction::engine of convolutions that can run either way.
inline constexpr std::string_view kWinograd = "winograd", kDirect = "direct";

// What a pass takes by Winograd's algorithm.
struct WinogradPass {
  double macs = 0;  // for each tile of 4x4 results and pair of channels 36, with stride 2 81
  std::size_t workspace_bytes = 0;
  double relative_time = 0;  // expected, over the direct pass's
};

// 3x3, stride 1 and padding of at most 1 or stride 2 and padding of 1, one group, channels in multiples
// of 32.
bool can_be_winograd(const Graph& graph, const Conv& op);
// Empty if it can't be, or not on this CPU.
std::optional<WinogradPass> winograd_pass(const Graph& graph, const Conv& op, ConvPass pass,
                                          const DeviceLimits& limits, Precision precision);
// Expected to save a tenth of the time at least.
bool is_faster(const WinogradPass& pass);

// Names of the instructions of a described or prepared Program that run by Winograd's algorithm.
std::vector<std::string> winograd_instructions(const Program& program);

}  // namespace plumb
