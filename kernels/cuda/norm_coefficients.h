// The second pass of a norm's backward, and what the sums of the first become for it. For .cu files only.
#pragma once

#include <cstdint>

#include "kernels/cuda/norm_tile.h"

namespace plumb::cuda {

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
