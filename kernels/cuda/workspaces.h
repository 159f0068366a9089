// Workspace limits of instructions before a device prepares them; the chosen plans set the final sizes.
#pragma once

#include <cstddef>

#include "kernels/program.h"
#include "models/graph.h"

namespace plumb::cuda {

// For GEMMs: cuBLASLt's recommendation for sm_90. Engines that need more aren't chosen.
inline constexpr std::size_t kDenseWorkspaceLimit = std::size_t{32} << 20;
// Per image: loss (f64), and whether the label is the largest or among the five largest (i32 each).
inline constexpr std::size_t kLossWorkspacePerImage = 16;

// Convolution engines may transpose their inputs and outputs, and keep partial sums of weights in fp32. Their
// limit follows from their tensors' sizes, within bounds. in, out: of the convolution as a whole; weight: its
// master. of_weights: the weight gradient.
std::size_t conv_workspace_bytes(const Graph& graph, const Conv& op, bool of_weights, const Buffer& in,
                                 const Buffer& out, const Buffer& weight);

// For the margin loss' instructions from `first_instruction` on; rows: of class centres that they work with.
void set_margin_workspaces(Program& program, std::size_t first_instruction, std::int64_t images_of_all_ranks,
                           const Buffer& rows);

}  // namespace plumb::cuda
