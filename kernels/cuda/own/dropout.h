// Dropout of activations in NHWC. models/dropout.h picks the elements by their order c, h, w.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/plan/state.h"
#include "kernels/program/instructions/dtype.h"
#include "models/dropout.h"
#include "models/graph.h"

namespace plumb::cuda {

struct DropoutTensors {
  const std::byte* in = nullptr;  // of this shape, in a multiple of 8 channels
  std::byte* out = nullptr;
  DType dtype = DType::f32;  // of both: f32, f16 or bf16
  Shape shape;
};
// out = keep_scale * in for elements kept in the state's iteration, else 0; forward and backward alike. Image
// n of the batch is sample first_sample + n. Enqueued on the stream. Addresses are multiples of 16 bytes. At
// most 65535 images of fewer than 2^32 elements each.
void launch_dropout(const DropoutTensors& tensors, const DropoutRule& rule, const State* state,
                    cudaStream_t stream);

}  // namespace plumb::cuda
