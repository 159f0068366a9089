// The gradient of a ResNet block's end, by the 1x1 convolution of stride 1 that begins the next block: its
// backward-data, the other gradient and the ReLU's mask in one pass, on tensor cores, NHWC, in f16 or bf16
// with f32 accumulation; compute capability 8.0. Results repeat bit for bit on one GPU; addresses are
// multiples of 16 bytes.
//
// Why not cuBLASLt alone: its algorithms with this epilogue are kernels for sm_80. At batch 256 on an H100
// they take 0.454 ms for 64 to 256 channels at 56x56 pixels, where memory allows 0.315; 0.247 (0.158) for 128
// to 512 at 28x28, 0.150 (0.079) for 256 to 1024 at 14x14.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/block_end_shape.h"
#include "kernels/cuda/norm.h"
#include "kernels/instructions/dtype.h"

namespace plumb::cuda {

// All row by row: d_out [pixels, outputs], weight [outputs, channels], added and d_in [pixels, channels].
struct BlockEndOperands {
  const std::byte *d_out = nullptr, *weight = nullptr, *added = nullptr;
  const std::byte* mask = nullptr;  // bit i % 8 of byte i / 8 is element i's
  std::byte* d_in = nullptr;
  // The norm whose output's gradient is d_in, and its shortcut's norm; or null.
  const std::byte *norm_in = nullptr, *shortcut_in = nullptr;  // [pixels, channels]
  NormBackward norm, shortcut;
  float* partials = nullptr;  // block_end_workspace()
};

// d_in = d_out weight + added where the mask's bit is 1, else 0. With norm_in also what
// launch_norm_backward_sums makes of d_in. Enqueued on the stream.
void launch_block_end(DType dtype, const BlockEndShape& shape, const BlockEndOperands& operands,
                      cudaStream_t stream);

}  // namespace plumb::cuda
