// What steps may take beside their buffers, as far as it is known before a device has prepared them: the
// plans that are chosen settle it.
#pragma once

#include <cstddef>

#include "kernels/program.h"
#include "models/graph.h"

namespace plumb::cuda {

// A GEMM's: what cuBLASLt recommends for sm_90. Engines that want more aren't chosen.
inline constexpr std::size_t kDenseWorkspaceLimit = std::size_t{32} << 20;
// Loss (f64), and whether the label is the largest or among the five largest (i32 each), of each image.
inline constexpr std::size_t kLossWorkspacePerImage = 16;

// Engines of convolutions may transpose what they read and write, and keep partial sums of weights in fp32:
// they may take what their tensors suggest, within bounds. in, out: of the convolution as a whole; weight:
// its master. of_weights: the gradient of the weights.
std::size_t conv_workspace_bytes(const Graph& graph, const Conv& op, bool of_weights, const Buffer& in,
                                 const Buffer& out, const Buffer& weight);

// Of the margin loss' steps from `first_step` on; rows: of class centres that they work with.
void set_margin_workspaces(Program& program, std::size_t first_step, std::int64_t images_of_all_ranks,
                           const Buffer& rows);

}  // namespace plumb::cuda
