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

struct NormMeans {
  const float *norm, *shortcut;  // [channels]
};

// What block ends read and write, [pixels, channels] row by row where nothing else is said; null where a
// launch has none. T is std::byte, and in kernels the elements' type.
template <typename T>
struct EndTensors {
  const T *left = nullptr, *weight = nullptr;  // [pixels, outputs], [outputs, channels]
  const T *second_left = nullptr,
          *second_weight = nullptr;  // [pixels, second_outputs], [second_outputs, channels]
  const T* added = nullptr;          // the other gradient, or the shortcut
  const float* scale_shift =
      nullptr;  // [2, channels]; forward, joined: of the block's last norm, through: of the one in front
  const float* added_scale_shift =
      nullptr;                        // forward: [2, channels], or null; joined: of the shortcut's norm
  const float* shift = nullptr;       // through: [channels + 1], the last one multiplies the second product
  const std::byte* mask = nullptr;    // gradient: bit i % 8 of byte i / 8 is element i's
  std::uint8_t* made_mask = nullptr;  // forward, joined: as NormApply has it
  T* out = nullptr;
  const T *norm_in = nullptr, *shortcut_in = nullptr;
  NormMeans means{};          // of the norms that a launch is given
  float* partials = nullptr;  // block_end_workspace()
};
using EndAddresses = EndTensors<std::byte>;

// Gradient: out = left weight + added where the mask's bit is 1, else 0. With norm_in, the input of a norm
// whose output's gradient this is, also what launch_norm_backward_sums makes of it for this norm, and with
// shortcut_in for its shortcut's; without, norm.d_bias alone may be given: the sum of out over each channel.
// Enqueued on the stream, as are the others.
void launch_block_end(DType dtype, const BlockEndShape& shape, const EndAddresses& tensors,
                      const NormBackward& norm, const NormBackward& shortcut, cudaStream_t stream);

// Forward: the output of a block's end without the convolution's output
// (kernels/program/instructions/block_end.h): out = relu(left weight + shift + added); joined, without
// `added`: of both products and shifts.
void launch_block_end_forward(DType dtype, const BlockEndShape& shape, const EndAddresses& tensors,
                              cudaStream_t stream);

// Computes the gradient in front of a block's last convolution, behind the ReLU there.
// out = left weight + second_left second_weight shift[channels] + shift; with norm_in where scale_shift[0] *
// norm_in + scale_shift[1] > 0, else 0, and what launch_norm_backward_sums makes of it. Channels, as many as
// second_outputs, are a multiple of 64.
void launch_block_end_through(DType dtype, const BlockEndShape& shape, const EndAddresses& tensors,
                              const NormBackward& norm, cudaStream_t stream);

// Below, for every GPU: coefficients of a norm whose input is a product that is never stored
// (kernels/program/instructions/block_end.h has the formulas). dtype is f32, f16 or bf16; tensors are f32
// unless noted.
struct ProductNormShape {
  std::int64_t pixels = 0;
  int inputs = 0;   // channels of the convolution's input: a multiple of 64, at most 1024
  int outputs = 0;  // of its output: a multiple of 16, at most 4096
};

struct ProductStatistics {
  const float *products = nullptr, *sums = nullptr,
              *weight = nullptr;  // [inputs, inputs], [inputs], [outputs, inputs]
  std::byte *scaled = nullptr,
            *scaled_transposed = nullptr;  // [outputs, inputs], [inputs, outputs] in `dtype`
  float* deviations = nullptr;             // [outputs, inputs]
  bool tf32 = false;                       // scaled and scaled_transposed are rounded for tensor cores
};
void launch_product_norm_statistics(const ProductNormShape& shape, DType dtype,
                                    const ProductStatistics& operands, const NormStatistics& into,
                                    cudaStream_t stream);

struct ProductBackward {
  const float *products = nullptr, *d_out_sums = nullptr;  // [outputs, inputs], [outputs]
  const float *sums = nullptr, *deviations = nullptr;      // ProductStatistics'
  const float *weight = nullptr, *scale = nullptr, *inv_std = nullptr;
  std::byte* d_weight = nullptr;  // [outputs, inputs]
  DType d_weight_dtype = DType::f32;
  float *d_scale = nullptr, *d_bias = nullptr;  // [outputs]; d_bias may be null
  std::byte* factors = nullptr;                 // [inputs, inputs] in `dtype`
  bool tf32 = false;                            // factors are rounded for tensor cores
  float* shift = nullptr;                       // [inputs + 1]
  float* workspace = nullptr;                   // product_norm_workspace()
};
// Four blocks share out the outputs that the factors are sums over. The last to end, by a counter for at
// least 4 rows of the factors, adds their sums.
inline constexpr int kProductNormSplits = 4;
constexpr int product_norm_counters(const ProductNormShape& shape) {
  return shape.inputs / 4;
}
constexpr std::size_t product_norm_workspace(const ProductNormShape& shape) {
  const auto inputs = static_cast<std::size_t>(shape.inputs),
             outputs = static_cast<std::size_t>(shape.outputs);
  return sizeof(float) * (3 * outputs + static_cast<std::size_t>(product_norm_counters(shape)) +
                          kProductNormSplits * (inputs + 1) * inputs);
}
void launch_product_norm_backward(const ProductNormShape& shape, DType dtype, const ProductBackward& operands,
                                  cudaStream_t stream);

}  // namespace plumb::cuda
