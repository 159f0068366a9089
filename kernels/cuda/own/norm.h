// Passes of batch norm over the tensors of norm_partition.h; norm.cpp combines them. Tensors are f32, f16 or
// bf16 (`dtype`), with planes of more than one pixel f32, at addresses that are multiples of 16 bytes;
// arithmetic and per-channel values are f32. Everything is enqueued on the stream, and results repeat bit for
// bit on every GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plan/norm_partition.h"
#include "kernels/program/instructions/dtype.h"

namespace plumb::cuda {

// Where the blocks of a pass meet.
struct NormScratch {
  float* partials = nullptr;     // norm_partials_bytes()
  unsigned* counters = nullptr;  // norm_counters() of them, zero before and after every launch
};

// f32 slopes of a PReLU: [channels], or [1] for all channels.
struct NormSlope {
  const float* data = nullptr;
  bool per_channel = true;
};

// Outputs of a batch's statistics, [channels] each; scale_shift [2, channels].
struct NormStatistics {
  const float* scale = nullptr;
  const float* bias = nullptr;
  float* running_mean = nullptr;
  float* running_variance = nullptr;
  float* mean = nullptr;
  float* inv_std = nullptr;              // 1 / sqrt(variance + epsilon)
  std::byte* scale_shift = nullptr;      // out = scale_shift[0] * in + scale_shift[1]
  DType scale_shift_dtype = DType::f32;  // or f16, for a convolution that normalizes its input
  float epsilon = 0;
  float momentum = 0;  // running = (1 - momentum) * running + momentum * batch; variance unbiased
};

void launch_norm_statistics(const NormPartition& partition, DType dtype, const std::byte* in,
                            const NormScratch& scratch, const NormStatistics& into, cudaStream_t stream);
// The same from sums [2, channels] of elements and of their squares, from a convolution's epilogue.
void launch_norm_finalize(std::int64_t pixels, int channels, const float* sums, const NormStatistics& into,
                          cudaStream_t stream);

// out = scale_shift[0] * in + scale_shift[1] (+ residual, or residual_scale_shift[0] * residual +
// residual_scale_shift[1]). With `relu`: max(out, 0). With a slope: slope * out where out <= 0; a slope
// excludes residual and mask. Bit i of mask[k]: element 8 k + i is > 0 before the ReLU (a NaN sets it and so
// passes in both directions).
struct NormApply {
  const std::byte* in = nullptr;
  const float* scale_shift = nullptr;
  std::byte* out = nullptr;
  const std::byte* residual = nullptr;          // or null
  const float* residual_scale_shift = nullptr;  // or null
  std::uint8_t* mask = nullptr;                 // or null; with relu and planes of 1 only
  bool relu = false;
  NormSlope slope;            // or null
  float* out_sums = nullptr;  // or null; [channels], of out as stored; excludes a residual and a slope
  NormScratch scratch;        // with out_sums
  bool tf32 = false;          // with out_sums: out is rounded for tensor cores (as_factor())
};
// Sums of NormApply's input, from a convolution's epilogue, and the statistics that follow from them.
struct NormInputSums {
  const float* sums = nullptr;  // or null
  NormStatistics statistics;    // its scale_shift is f32
};
// With input sums, for half types only, it also does launch_norm_finalize's work and applies the line that
// this makes.
void launch_norm_apply(const NormPartition& partition, DType dtype, const NormApply& pass,
                       cudaStream_t stream, const NormInputSums& from = {});

// The sums of a grid of pixels of `in`, [channels], and the grid's pixels themselves. In NHWC; the partition
// is the grid's.
struct PixelSample {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;  // or null
  float* sums = nullptr;
  PixelGrid grid;
  NormScratch scratch;  // partial sums of one sum
  bool tf32 = false;    // with out: as NormApply has it
};
void launch_sample_pixels(const NormPartition& partition, DType dtype, const PixelSample& sample,
                          cudaStream_t stream);

// d_in = d_out (+ second_d_out) where the mask's bit is set, else 0, and its sums, [channels]. In NHWC.
struct GradientMask {
  const std::byte* d_out = nullptr;
  const std::byte* second_d_out = nullptr;  // or null; has the grid's pixels alone
  PixelGrid grid;
  const std::uint8_t* mask = nullptr;
  std::byte* d_in = nullptr;
  float* sums = nullptr;
  NormScratch scratch;  // partial sums of one sum
  bool tf32 = false;    // d_in is rounded for tensor cores
};
void launch_masked_gradient(const NormPartition& partition, DType dtype, const GradientMask& gradient,
                            cudaStream_t stream);

// Gradient of a norm's output before its ReLU: d_out (+ second_d_out) where the mask's bit is set, or where
// scale_shift[0] * in + scale_shift[1] is > 0; everywhere without either. Before its PReLU: slope * d_out
// where that expression is not > 0. scale_shift excludes shortcut_in, and a slope second_d_out; the second
// pass takes no second_d_out with scale_shift.
struct NormGradient {
  const std::byte* in = nullptr;
  const std::byte* d_out = nullptr;
  const std::byte* second_d_out = nullptr;  // or null
  const std::byte* shortcut_in = nullptr;   // or null; of a second norm with this gradient
  const std::uint8_t* mask = nullptr;       // or null
  const std::byte* scale_shift = nullptr;   // or null
  DType scale_shift_dtype = DType::f32;     // or f16
  NormSlope slope;                          // or null; with scale_shift
};
// [channels] each; coefficients [3, channels]:
// d_in = coefficients[0] * gradient + coefficients[1] * in + coefficients[2]
// = scale * inv_std * (gradient - d_bias / pixels - normalized * d_scale / pixels).
struct NormBackward {
  const float* scale = nullptr;
  const float* mean = nullptr;
  const float* inv_std = nullptr;
  float* d_scale = nullptr;
  float* d_bias = nullptr;
  float* coefficients = nullptr;
  float* d_slope = nullptr;         // or null: no sum for it
  float* d_shared_slope = nullptr;  // or null; [1], the sum of d_slope: for a slope shared by all channels
};
// Reduces that gradient and its product with (in - mean) to NormBackward; with a slope also d_out *
// (scale_shift[0] * in + scale_shift[1]) where that is not > 0; with shortcut_in its product with
// (shortcut_in - shortcut.mean) to `shortcut`. Writes the gradient to d_residual unless null, which it is
// with scale_shift.
void launch_norm_backward_sums(const NormPartition& partition, DType dtype, const NormGradient& gradient,
                               std::byte* d_residual, const NormScratch& scratch, const NormBackward& into,
                               const NormBackward& shortcut, cudaStream_t stream);
// d_in = …, or d_in += … to add to an existing gradient; += allows one d_out and no scale_shift. The
// shortcut's, if there is one, by rows 3 to 5 of the coefficients; it allows no +=, and may be d_out itself.
struct NormInputGradient {
  std::byte* data = nullptr;
  bool adds = false;
  std::byte* shortcut = nullptr;
};
void launch_norm_backward_apply(const NormPartition& partition, DType dtype, const NormGradient& gradient,
                                const float* coefficients, const NormInputGradient& d_in,
                                cudaStream_t stream);

// Gradient of a norm's output before its ReLU, where a max pool reads that (NHWC, goes_back_through() in
// norm_partition.h): per pixel the sum of d_out (+ second_d_out) over the windows that it won.
struct NormPooledGradient {
  const std::byte* in = nullptr;
  const std::byte* d_out = nullptr;         // of the pool's output
  const std::byte* second_d_out = nullptr;  // or null; likewise
  const std::uint8_t* argmax = nullptr;     // from launch_max_pool_forward with winners
};
// d_in = coefficients[0] * gradient + coefficients[1] * in + coefficients[2]. `shape` is that of `in`. The
// coefficients come from launch_norm_backward_sums over partition_pooled(shape), with winners for `in`:
// pixels that won no window add nothing to the sums.
void launch_norm_pool_backward_apply(const Shape& shape, DType dtype, const NormPooledGradient& gradient,
                                     const float* coefficients, std::byte* d_in, cudaStream_t stream);

}  // namespace plumb::cuda
