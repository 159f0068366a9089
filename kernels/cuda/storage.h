// Device storage of a Graph's tensors: dtypes, padded channels, half-precision copies of weights.
#pragma once

#include "kernels/describe.h"
#include "kernels/lowering.h"

namespace plumb::cuda {

// fp16 and bf16 hold activations, their gradients, convolution and dense weights (a copy beside the fp32
// master) and those weights' gradients in half. Masters, momentum, norms, biases, statistics and the logits
// of a softmax loss are f32 in every precision. With DescribeOptions::fp32_head everything that the head's
// operations read and write is f32, weights and gradients included, without copies. The images, and all
// tensors with the first convolution's layout, have 4 channels (f32) or 8 (half) in place of 3: tensor cores
// read 16 bytes at once.
// Returns the buffers of a Program without instructions yet.
Lowering start_storage(const Graph& graph, const DescribeOptions& options);

// Staging for batches from the host: two halves, one filled while the other is read. Images f32 [2, n, c, h,
// w], labels i32 [2, n]: Tensors::staged_….
void add_staging(Lowering& lowering);

}  // namespace plumb::cuda
