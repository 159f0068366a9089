// The first convolution of a ResNet (stem_shape.h) on tensor cores, NHWC, in f16 or bf16 with f32
// accumulation; compute capability 8.0. Everything is enqueued on the stream; results repeat bit for bit on
// one GPU; addresses are multiples of 16 bytes.
//
// Why not cuDNN: of its engines for 4 channels in f16 the fast one (63 in 9.19) sums in f16. With 8 channels
// the fastest that sums in f32 takes 1.22 ms for forward at batch 256 on an H100, 0.90 ms for the weights'
// gradient; reading and writing takes 0.17 ms each.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/plan/stem_shape.h"
#include "kernels/program/instructions/dtype.h"

namespace plumb::cuda {

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
