// Depthwise convolutions, NHWC, in f32, f16 or bf16 with f32 accumulation. 3x3 with padding 1 and stride 1 or
// 2 is fast. Other windows (such as one over a whole image) take one output at a time. Channels are a
// multiple of 16 bytes. Weights are [kh, kw, c], they and their gradient in the dtype of activations.
// Everything is enqueued on the stream; results repeat bit for bit on every GPU; addresses are multiples of
// 16 bytes.
//
// Why not cuDNN: 9.19 plans all of MobileFaceNet's depthwise convolutions for sm_75, 80 and 90, but only in
// f16. Its specialized engines (57, 61 and 62) cover only 3x3, without backward-data at stride 2. Everything
// else falls to its general engine 0, or to one with up to 245 MiB of workspace.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/plan/depthwise_shape.h"
#include "kernels/program/instructions/dtype.h"

namespace plumb::cuda {

// At most 65535 images. out[n, y, x, c] = sum over the window of in * weight.
void launch_depthwise_forward(DType dtype, const DepthwiseShape& shape, const std::byte* in,
                              const std::byte* weight, std::byte* out, cudaStream_t stream);

// d_in[n, y, x, c] = sum of d_out * weight over the windows that contain the pixel.
void launch_depthwise_backward_data(DType dtype, const DepthwiseShape& shape, const std::byte* d_out,
                                    const std::byte* weight, std::byte* d_in, cudaStream_t stream);

// d_weight[kh, kw, c] = sum of in * d_out over images and windows. Partial sums take
// depthwise_workspace_bytes().
void launch_depthwise_backward_weights(DType dtype, const DepthwiseShape& shape, const std::byte* in,
                                       const std::byte* d_out, float* partials, std::byte* d_weight,
                                       cudaStream_t stream);

}  // namespace plumb::cuda
