// How the CUDA device holds what a Graph declares: dtypes, padded channels, half-precision copies of weights.
#pragma once

#include <vector>

#include "kernels/describe.h"
#include "kernels/lowering.h"
#include "kernels/targets.h"

namespace plumb::cuda {

// fp16 and bf16 hold activations, their gradients, convolution and dense weights (a copy beside the fp32
// master) and those weights' gradients in half; masters, momentum, norms, biases, statistics and the logits
// of a softmax loss are f32 in every precision. With DescribeOptions::fp32_head that ends where the head
// begins: what its operations make and read, weights and gradients included, is f32, with no copies. The
// images, and all that has the first convolution's layout, have 4 channels (f32) or 8 (half) in place of 3:
// tensor cores read 16 bytes at once.
struct Storage {
  Lowering lowering;
  std::vector<DType> operations;  // by op: of what it writes, of its weights and of their gradients
  std::vector<DType> gradients;   // by ValueId
  std::vector<BufferId> weights;  // by ParameterId: what forward and backward-data read
};

// Buffers of a Program that has no steps yet.
Storage start_storage(const Graph& graph, const DescribeOptions& options);

// Where batches arrive from the host, in two halves by turns, so that one is filled while the other one is
// read: images f32 [2, n, c, h, w], labels i32 [2, n]: Tensors::staged_….
void add_staging(Lowering& lowering);

}  // namespace plumb::cuda
