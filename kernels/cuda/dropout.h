// Dropout of activations in NHWC layout: which elements, models/dropout.h says by their order c, h, w.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/state.h"
#include "kernels/instructions/dtype.h"
#include "models/dropout.h"
#include "models/graph.h"

namespace plumb::cuda {

struct DropoutTensors {
  const std::byte* in = nullptr;  // of this shape, f32, f16 or bf16
  std::byte* out = nullptr;
  DType in_dtype = DType::f32, out_dtype = DType::f32;
  Shape shape;
};
// out = keep_scale * in where the element stays in the state's iteration, else 0: both ways. Image n of the
// batch is number first_sample + n of all. Enqueued on the stream; addresses are multiples of 16 bytes; at
// most 65535 images; an image has fewer than 2^32 elements.
void launch_dropout(const DropoutTensors& tensors, const DropoutRule& rule, const State* state,
                    cudaStream_t stream);

}  // namespace plumb::cuda
