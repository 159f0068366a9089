// Batch norm over [pixels, channels] (NHWC), in passes that norm.cpp puts together. Tensors are stored as
// f32, f16 or bf16 (`dtype`) at addresses that are multiples of 16 bytes; arithmetic and everything per
// channel is f32. Any number of channels and pixels will do; a multiple of 8 channels is fast. Everything is
// enqueued on the stream, and runs repeat bit for bit on every GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/norm_partition.h"
#include "kernels/instructions/dtype.h"

namespace plumb::cuda {

// [2, channels] or [3, channels] that a pass multiplies and adds with.
struct NormFactors {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
};

// f32, of a PReLU: [channels], or [1] for all of them.
struct NormSlope {
  const float* data = nullptr;
  bool per_channel = true;
};

// Where the statistics of a batch go, [channels] each; factors [2, channels].
struct NormStatistics {
  const float* scale = nullptr;
  const float* bias = nullptr;
  float* running_mean = nullptr;
  float* running_variance = nullptr;
  float* mean = nullptr;
  float* inverse_deviation = nullptr;  // 1 / sqrt(variance + epsilon)
  std::byte* factors = nullptr;        // out = factors[0] * in + factors[1]
  DType factors_dtype = DType::f32;
  float epsilon = 0;
  float momentum = 0;  // running = (1 - momentum) * running + momentum * batch, its variance unbiased
};

// Means and sums of squared differences from them, per channel and block of pixels, into `partials`.
void launch_norm_statistics(const NormPartition& partition, DType dtype, const std::byte* in, float* partials,
                            cudaStream_t stream);
// … and what follows from them.
void launch_norm_finish(const NormPartition& partition, const float* partials, const NormStatistics& into,
                        cudaStream_t stream);
// The same from sums [2, channels] of elements and of their squares, as a convolution's epilogue makes them.
void launch_norm_finalize(std::int64_t pixels, int channels, const float* sums, const NormStatistics& into,
                          cudaStream_t stream);

// out = factors[0] * in + factors[1] (+ residual, or residual_factors[0] * residual + residual_factors[1]),
// and max(…, 0) of it if `relu`, or slope * … where it is <= 0 if there is a slope, which goes with neither a
// residual nor a mask. Bit i of mask[k]: element 8 k + i is > 0 before the ReLU (a NaN counts as such, so
// that it gets through in both directions).
struct NormApply {
  const std::byte* in = nullptr;
  NormFactors factors;
  std::byte* out = nullptr;
  const std::byte* residual = nullptr;  // or null
  NormFactors residual_factors;         // or null
  std::uint8_t* mask = nullptr;         // or null; with relu only
  bool relu = false;
  NormSlope slope;  // or null
};
void launch_norm_apply(const NormPartition& partition, DType dtype, const NormApply& pass,
                       cudaStream_t stream);

// The gradient of a norm's output behind its ReLU: d_out (+ second_d_out) where the mask's bit is set, or
// where `activated`, the stored output, is > 0, or where factors[0] * in + factors[1] is > 0; everywhere
// without all three. Behind its PReLU: slope * d_out where it is not > 0 by the factors. Factors go with one
// d_out.
struct NormGradient {
  const std::byte* in = nullptr;
  const std::byte* d_out = nullptr;
  const std::byte* second_d_out = nullptr;  // or null
  const std::uint8_t* mask = nullptr;       // or null
  const std::byte* activated = nullptr;     // or null
  NormFactors factors;                      // or null
  NormSlope slope;                          // or null; with factors
};
// Per channel and block of pixels: sums of that gradient and of its product with (in - mean), into
// `partials`, and, with a slope, of d_out * (factors[0] * in + factors[1]) where that is not > 0. d_residual,
// if not null, becomes that gradient.
void launch_norm_backward_sums(const NormPartition& partition, DType dtype, const NormGradient& gradient,
                               const float* mean, std::byte* d_residual, float* partials,
                               cudaStream_t stream);

// [channels] each; coefficients f32 [3, channels]: d_in = coefficients[0] * gradient + coefficients[1] * in +
// coefficients[2]
//      = scale * inverse_deviation * (gradient - d_bias / pixels - normalised * d_scale / pixels).
struct NormBackward {
  const float* scale = nullptr;
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  float* d_scale = nullptr;
  float* d_bias = nullptr;
  float* coefficients = nullptr;
  float* d_slope = nullptr;  // or null: there is no third sum
};
void launch_norm_backward_finish(const NormPartition& partition, const float* partials,
                                 const NormBackward& into, cudaStream_t stream);
// d_slope[0] = sum of per_channel[0 … channels - 1]: the gradient of a slope that all channels share.
void launch_norm_sum_slopes(const float* per_channel, int channels, float* d_slope, cudaStream_t stream);
// d_in = …, or, where it is added to a gradient that is there, d_in += …, which goes with one d_out and no
// factors.
struct NormInputGradient {
  std::byte* data = nullptr;
  bool adds = false;
};
void launch_norm_backward_apply(const NormPartition& partition, DType dtype, const NormGradient& gradient,
                                const NormFactors& coefficients, const NormInputGradient& d_in,
                                cudaStream_t stream);

}  // namespace plumb::cuda
