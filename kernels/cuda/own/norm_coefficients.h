// What a norm's statistics and the sums of its backward's first pass become, and the second pass. For .cu
// files only.
#pragma once

#include <cstdint>

#include "kernels/cuda/own/norm_tile.h"

namespace plumb::cuda {

// Of a channel: out = scale * in + shift.
struct NormLine {
  float inv_std, scale, shift;
};
__device__ inline NormLine line_of(const NormStatistics& into, int channel, float mean, float variance) {
  const float inv_std = 1 / sqrtf(variance + into.epsilon);
  const float scale = into.scale[channel] * inv_std;
  return {inv_std, scale, into.bias[channel] - mean * scale};
}

// Of a batch's mean and biased variance over `elements`.
__device__ inline void settle(const NormStatistics& into, int channel, int channels, float mean,
                              float variance, std::int64_t elements) {
  // Read before anything is written, which might be at the same address for all the compiler knows.
  const float running_mean = into.running_mean[channel], running_variance = into.running_variance[channel];
  const auto [inv_std, scale, shift] = line_of(into, channel, mean, variance);
  // n / (n - 1) for n > 1 elements per channel (PyTorch, aten/src/ATen/native/Normalization.cpp).
  const float correction =
      elements > 1 ? static_cast<float>(elements) / static_cast<float>(elements - 1) : 1.0F;
  const float keep = 1 - into.momentum;
  into.running_mean[channel] = keep * running_mean + into.momentum * mean;
  into.running_variance[channel] = keep * running_variance + into.momentum * correction * variance;
  if (into.mean) into.mean[channel] = mean;
  into.inv_std[channel] = inv_std;
  if (into.scale_shift_dtype == DType::f16) {
    as<__half>(into.scale_shift)[channel] = from_float<__half>(scale);
    as<__half>(into.scale_shift)[channels + channel] = from_float<__half>(shift);
  } else {
    as<float>(into.scale_shift)[channel] = scale;
    as<float>(into.scale_shift)[channels + channel] = shift;
  }
}

// Sums over a channel's `count` elements: of the gradient, and of its product with (in - mean).
struct NormGradientSums {
  float gradient = 0, product = 0;
  __device__ void settle(const NormBackward& into, std::int64_t elements, int channels, int channel) const {
    const auto count = static_cast<float>(elements);
    const float inv_std = into.inv_std[channel], mean = into.mean[channel];
    const float d_scale = product * inv_std;
    const float of_gradient = into.scale[channel] * inv_std;
    const float of_in = -of_gradient * inv_std * d_scale / count;
    into.d_scale[channel] = d_scale;
    into.d_bias[channel] = gradient;
    into.coefficients[channel] = of_gradient;
    into.coefficients[channels + channel] = of_in;
    into.coefficients[2 * channels + channel] = -of_gradient * gradient / count - of_in * mean;
  }
};

// What turns gradients into d_in, for each channel of a thread.
template <int kChannels>
struct Coefficients {
  float of_gradient[kChannels], of_in[kChannels], constant[kChannels];
  __device__ void load(const float* from, std::int64_t channels, int channel) {
    load_floats(from + channel, of_gradient);
    load_floats(from + channels + channel, of_in);
    load_floats(from + 2 * channels + channel, constant);
  }
  __device__ float d_in(int channel, float gradient, float in) const {
    return of_gradient[channel] * gradient + (of_in[channel] * in + constant[channel]);
  }
};

}  // namespace plumb::cuda
