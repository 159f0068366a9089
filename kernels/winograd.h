// Winograd's F(4x4, 3x3) (Lavin, Gray: Fast Algorithms for Convolutional Neural Networks, CVPR 2016) as
// oneDNN has it: which convolutions it can compute, what a pass takes, and where that is less than directly.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/program.h"
#include "models/graph.h"

namespace plumb {

// Instruction::engine of convolutions that can run either way.
inline constexpr std::string_view kWinograd = "winograd", kDirect = "direct";

enum class ConvPass { forward, backward_data, backward_weights };

// What a pass takes by Winograd's algorithm.
struct WinogradPass {
  double macs = 0;                  // 36 for each tile of 4x4 results and pair of channels
  std::size_t workspace_bytes = 0;  // estimated from above: oneDNN's blocking depends on the caches
  double relative_time = 0;         // expected, over the direct pass's
};

// 3x3, stride 1, padding of at most 1, one group, whole vectors of 16 channels.
bool can_be_winograd(const Graph& graph, const Conv& op);
// Empty if it can't be, or if backward-weights would need much memory, as its sums are kept once per thread.
std::optional<WinogradPass> winograd_pass(const Graph& graph, const Conv& op, ConvPass pass, int threads);
// Expected to save a tenth of the time at least.
bool is_faster(const WinogradPass& pass);

// Report for users: the convolutions of a described or prepared Program that run by Winograd's algorithm.
// Empty where the device has no such choice.
std::string winograd_text(const Program& program);
// Names of those instructions.
std::vector<std::string> winograd_instructions(const Program& program);

}  // namespace plumb
