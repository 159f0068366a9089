// Convolutions of 64 channels to 64 with 3x3 windows, stride 1 and padding 1 (window_shape.h), by products of
// warpgroups on tensor cores, NHWC, in f16 or bf16 with f32 accumulation; compute capability 9.0 only.
// Results repeat bit for bit on one GPU; addresses are multiples of 16 bytes. All is enqueued on the stream.
//
// Why not cuDNN: at batch 256 and 56x56 pixels on an H200 its fastest engines in f16 take 0.126 ms for
// forward, 0.132 with sums, 0.130 for the data's gradient, 0.178 for that with a norm's sums and 0.133 for
// the weights' gradient (results/measured/nvidia_h200). The roofline is 0.060 ms, by tensor cores, and 0.064
// with the norm's input.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/own/norm.h"
#include "kernels/cuda/plan/window_shape.h"
#include "kernels/program/instructions/dtype.h"

namespace plumb::cuda {

// in and out [n, h, w, 64], weight [64, 3, 3, 64]. With sums, f32 [2, 64]: of out's elements and of their
// squares; partials then takes window_workspace(). Both may be null.
void launch_window_forward(DType dtype, const WindowShape& shape, int multiprocessors, const std::byte* in,
                           const std::byte* weight, std::byte* out, float* sums, float* partials,
                           cudaStream_t stream);

// The norm and ReLU in front of the convolution.
struct WindowNorm {
  const std::byte* in = nullptr;  // [n, h, w, 64]; null: no norm
  const float* bias = nullptr;
  NormBackward norm;
};
// d_in [n, h, w, 64] of d_out and weight. With a norm: 0 where the norm's output isn't > 0, and what
// launch_norm_backward_sums makes of it; partials then takes window_workspace().
void launch_window_backward_data(DType dtype, const WindowShape& shape, int multiprocessors,
                                 const std::byte* d_out, const std::byte* weight, std::byte* d_in,
                                 const WindowNorm& norm, float* partials, cudaStream_t stream);

// d_weight of in and d_out; partials takes window_weights_workspace().
void launch_window_backward_weights(DType dtype, const WindowShape& shape, int multiprocessors,
                                    const std::byte* in, const std::byte* d_out, float* partials,
                                    std::byte* d_weight, cudaStream_t stream);

}  // namespace plumb::cuda
