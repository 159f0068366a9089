// Dropout of activations in NHWC. models/dropout.h picks the elements by their order c, h, w.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/plan/state.h"
#include "kernels/program/instructions/dtype.h"
#include "models/dropout.h"
#include "models/graph.h"

namespace plumb::cuda {

// out = keep_scale * in for elements kept in the state's iteration, else 0; forward and backward alike. Image
// n of the batch is sample first_sample + n. Both are f32, f16 or bf16, of this shape, in a multiple of 8
// channels. Enqueued on the stream. Addresses are multiples of 16 bytes. At most 65535 images of fewer than
// 2^32 elements each.
void launch_dropout(DType dtype, const Shape& shape, const std::byte* in, std::byte* out,
                    const DropoutRule& rule, const State* state, cudaStream_t stream);

}  // namespace plumb::cuda
