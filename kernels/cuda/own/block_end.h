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
#include <cstdint>

#include "kernels/cuda/own/norm.h"
#include "kernels/cuda/plan/block_end_shape.h"
#include "kernels/program/instructions/dtype.h"

namespace plumb::cuda {

// All row by row: d_out [pixels, outputs], weight [outputs, channels], added and d_in [pixels, channels].
struct BlockEndOperands {
  const std::byte *d_out = nullptr, *weight = nullptr, *added = nullptr;
  const std::byte* mask = nullptr;  // bit i % 8 of byte i / 8 is element i's
  std::byte* d_in = nullptr;
  // The norm whose output's gradient is d_in, and its shortcut's norm; or null. Without norm_in, norm.d_bias
  // alone may be given: the sum of d_in over each channel.
  const std::byte *norm_in = nullptr, *shortcut_in = nullptr;  // [pixels, channels]
  NormBackward norm, shortcut;
  float* partials = nullptr;  // block_end_workspace()
};

// d_in [pixels, channels] = d_out [pixels, outputs] weight [outputs, channels] + added where the mask's bit
// is 1, else 0. With norm_in also what launch_norm_backward_sums makes of d_in. Enqueued on the stream.
void launch_block_end(DType dtype, const BlockEndShape& shape, const BlockEndOperands& operands,
                      cudaStream_t stream);

// The output of a block's end without the convolution's output, kernels/program/instructions/block_end.h.
struct BlockEndOutput {
  const std::byte *in = nullptr, *weight = nullptr;  // [pixels, outputs], [outputs, channels]
  const float* scale_shift = nullptr;                // [2, channels], of which row 1 is added
  const std::byte* residual = nullptr;               // or null: then the second product
  const float* residual_scale_shift = nullptr;       // [2, channels], or null
  const std::byte *shortcut_in = nullptr,
                  *shortcut_weight = nullptr;  // [pixels, second_outputs], [second_outputs, channels]
  std::byte* out = nullptr;
  std::uint8_t* mask = nullptr;  // as NormApply has it
};
// out = relu(in weight + shift + residual), or of both products and shifts. Enqueued on the stream, as is the
// next.
void launch_block_end_forward(DType dtype, const BlockEndShape& shape, const BlockEndOutput& operands,
                              cudaStream_t stream);

// Goes back from the block's output to that convolution's input, through the ReLU in front of it.
struct BlockEndInputGradient {
  const std::byte *d_out = nullptr, *weight = nullptr;  // [pixels, outputs], [outputs, channels]
  const std::byte *in = nullptr, *factors = nullptr;    // [pixels, channels], [channels, channels]
  const float* shift = nullptr;        // [channels + 1]; the last one multiplies the product with `factors`
  const float* scale_shift = nullptr;  // [2, channels] of the norm in front, with norm_in
  const std::byte* norm_in = nullptr;  // or null
  std::byte* d_in = nullptr;
  NormBackward norm;
  float* partials = nullptr;  // block_end_workspace() of two sums
};
// d_in = d_out weight + in factors shift[channels] + shift; with norm_in where scale_shift[0] * norm_in +
// scale_shift[1] > 0, else 0, and what launch_norm_backward_sums makes of it. Channels are a multiple of 64.
void launch_block_end_through(DType dtype, const BlockEndShape& shape, const BlockEndInputGradient& operands,
                              cudaStream_t stream);

// The same two by products of warpgroups (block_end_shape.h), for compute capability 9.0: of 256 outputs and
// a multiple of 256 channels with a residual that isn't normalized; of 256 channels.
void launch_block_end_walk(DType dtype, const BlockEndShape& shape, int multiprocessors,
                           const BlockEndOutput& operands, cudaStream_t stream);
void launch_wide_block_end_through(DType dtype, const BlockEndShape& shape,
                                   const BlockEndInputGradient& operands, cudaStream_t stream);

}  // namespace plumb::cuda
