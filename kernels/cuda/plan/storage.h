// What describe.cpp shares out: device storage of a Graph's tensors (dtypes, padded channels, half-precision
// copies of weights), workspaces, and the update.
#pragma once

#include <vector>

#include "kernels/cuda/plan/fusion.h"
#include "kernels/program/describe.h"
#include "kernels/program/lowering.h"

namespace plumb::cuda {

// fp16 and bf16 hold activations, their gradients, convolution and dense weights (a copy beside the fp32
// master) and those weights' gradients in half. Masters, momentum, norms, biases, statistics and the logits
// of a softmax loss are f32 in every precision. With DescribeOptions::fp32_head everything that the head's
// operations read and write is f32, weights and gradients included, without copies. In NHWC the images,
// and all tensors with the first convolution's layout, have more channels than 3: in f32 4, in half 8, as
// libraries' tensor cores read 16 bytes at once, or 4 for our own kernels (own/conv.h). Returns the buffers
// of a Program without instructions yet.
Lowering start_storage(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);
// DescribeOptions::layout if given. Else NCHW for strict fp32 on GPUs before compute capability 9.0: cuDNN's
// Winograd engines, which later GPUs lack, need no copies of tensors there
// (docs/how-to/new-gpu.md#layout-of-strict-fp32). NHWC for all other precisions, whose engines are made for
// it, and for networks with depthwise convolutions, for which our kernels have only NHWC. Throws Error(usage)
// if NCHW is asked for where it isn't supported.
TensorLayout choose_layout(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits);

// Counters of ended blocks (norm_partition.h), as many as the norm with the most needs.
BufferId add_norm_counters(Program& program, const Graph& graph, const std::vector<LayerFusion>& layers);

// Workspace limits of instructions before a device prepares them; the chosen plans set the final sizes.
// Engines that need more aren't chosen.
//
// Convolution engines may transpose their inputs and outputs, and keep partial sums of weights in fp32. Their
// limit follows from their tensors' sizes, within bounds. in, out: of the convolution as a whole; weight: its
// master. of_weights: the weight gradient.
std::size_t conv_workspace_bytes(const Graph& graph, const Conv& op, bool of_weights, const Buffer& in,
                                 const Buffer& out, const Buffer& weight);

// For the dense layers, products of block ends and the softmax loss.
void set_library_workspaces(Program& program, std::int64_t images);

// For the margin loss' instructions from `first_instruction` on; rows: of class centers that they work with.
void set_margin_workspaces(Program& program, std::size_t first_instruction, std::int64_t images_of_all_ranks,
                           const Buffer& rows);

// The end of an iteration, once every gradient is complete. One instruction searches for overflows, if the
// loss is scaled; one updates all trained parameters; one per set of sampled centers updates those rows; the
// last one computes the next state.
void lower_update(Lowering& lowering, bool scale_loss);

}  // namespace plumb::cuda
