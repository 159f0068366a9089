// The second pass of a norm's backward. For .cu files only.
#pragma once

#include <cstdint>

#include "kernels/cuda/norm_tile.h"

namespace plumb::cuda {

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
