// What describe.cpp shares out: device storage of a Graph's tensors (dtypes, padded channels, half-precision
// copies of weights) and workspaces.
#pragma once

#include <vector>

#include "kernels/cuda/plan/fusion.h"
#include "kernels/cuda/plan/norm_partition.h"
#include "kernels/program/describe.h"
#include "kernels/program/lowering.h"

namespace plumb::cuda {

// fp16 and bf16 hold activations, their gradients, convolution and dense weights (a copy beside the fp32
// master) and those weights' gradients in half. Masters, momentum, norms, biases, statistics and the logits
// of a softmax loss are f32 in every precision. With DescribeOptions::fp32_head everything that the head's
// operations read and write is f32, weights and gradients included, without copies. The images, and all
// tensors with the first convolution's layout, have more channels than 3: in f32 4, in half 8, as libraries'
// tensor cores read 16 bytes at once, or 4 for our own kernels (own/conv.h). Returns the buffers of a Program
// without instructions yet.
Lowering start_storage(const Graph& graph, const DescribeOptions& options, const DeviceLimits& limits,
                       const std::vector<LayerFusion>& layers);

// How our kernel for a norm, for sampled pixels or for a masked gradient divides its tensor among blocks.
NormPartition norm_partition(const Graph& graph, const Program& program, const Instruction& instruction);

// Counters of ended blocks (norm_partition.h), as many as the norm with the most needs; kNone without norms.
BufferId add_norm_counters(Program& program, const Graph& graph, const std::vector<LayerFusion>& layers);

// Whether a library's products compute this part of a block's end. If the library has none, plain
// instructions do the same.
bool is_by_products(const Instruction& instruction);

// Bytes of workspace that our own kernel for the instruction needs. 0 if it needs none, and for block ends,
// whose prepare() sets the size (own/block_end.h, block_end_shape.h).
std::size_t own_workspace_bytes(const Graph& graph, const Program& program, const Instruction& instruction);

// Sets the workspaces of all instructions: own_workspace_bytes(), or a limit for plans of libraries, which
// set the final sizes when a device prepares them. Engines that need more aren't chosen. Convolution engines
// may transpose their inputs and outputs, and keep partial sums of weights in fp32: their limit follows from
// their tensors' sizes, within bounds.
void set_workspaces(const Graph& graph, Program& program);

}  // namespace plumb::cuda
