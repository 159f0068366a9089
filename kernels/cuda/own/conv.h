// Convolutions by our own kernels, NHWC, with f32 accumulation. Everything is enqueued on the stream;
// addresses are multiples of 16 bytes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/plan/depthwise_shape.h"
#include "kernels/cuda/plan/stem_shape.h"
#include "kernels/program/instructions/dtype.h"

namespace plumb::cuda {

// Depthwise convolutions in f32, f16 or bf16. 3x3 with padding 1 and stride 1 or 2 is fast. Other windows
// (such as one over a whole image) take one output at a time. Channels are a multiple of 16 bytes. Weights
// are [kh, kw, c], they and their gradient in the dtype of activations. At most 65535 images. Results repeat
// bit for bit on every GPU.
//
// Why not cuDNN: 9.19 plans all of MobileFaceNet's depthwise convolutions for sm_75, 80 and 90, but only in
// f16. Its specialized engines (57, 61 and 62) cover only 3x3, without backward-data at stride 2. Everything
// else falls to its general engine 0, or to one with up to 245 MiB of workspace.

// out[n, y, x, c] = sum over the window of in * weight.
void launch_depthwise_forward(DType dtype, const WindowShape& shape, const std::byte* in,
                              const std::byte* weight, std::byte* out, cudaStream_t stream);

// d_in[n, y, x, c] = sum of d_out * weight over the windows that contain the pixel.
void launch_depthwise_backward_data(DType dtype, const WindowShape& shape, const std::byte* d_out,
                                    const std::byte* weight, std::byte* d_in, cudaStream_t stream);

// d_weight[kh, kw, c] = sum of in * d_out over images and windows. Partial sums take
// depthwise_workspace_bytes().
void launch_depthwise_backward_weights(DType dtype, const WindowShape& shape, const std::byte* in,
                                       const std::byte* d_out, float* partials, std::byte* d_weight,
                                       cudaStream_t stream);

// The first convolution of a ResNet (stem_shape.h) on tensor cores, in f16 or bf16; compute capability 8.0.
// Results repeat bit for bit on one GPU.
//
// Why not cuDNN: of its engines for 4 channels in f16 the fast one (63 in 9.19) sums in f16. With 8 channels
// the fastest that sums in f32 takes 1.22 ms for forward at batch 256 on an H100, 0.90 ms for the weights'
// gradient; reading and writing takes 0.17 ms each.

// in [n, h, w, 4], weight [64, 7, 7, 4], out [n, out_h, out_w, 64]. With sums, f32 [2, 64]: of out's
// elements and of their squares; partials then takes stem_forward_workspace(). Both may be null.
void launch_stem_forward(DType dtype, const StemShape& shape, int multiprocessors, const std::byte* in,
                         const std::byte* weight, std::byte* out, float* sums, float* partials,
                         cudaStream_t stream);

// d_weight [64, 7, 7, 4]; partials takes stem_weights_workspace().
void launch_stem_backward_weights(DType dtype, const StemShape& shape, int multiprocessors,
                                  const std::byte* in, const std::byte* d_out, float* partials,
                                  std::byte* d_weight, cudaStream_t stream);

}  // namespace plumb::cuda
