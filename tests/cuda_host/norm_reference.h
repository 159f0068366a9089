// Batch norm in double over [pixels, channels], for tests of kernels and instructions. In NCHW a tensor of
// `size` holds the same values in another order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/norm.h"
#include "kernels/program.h"
#include "tests/cuda_host/guarded_tensor.h"

namespace plumb {

using Values = std::vector<double>;

// Extent of a norm's tensor. plane 1: NHWC; else NCHW with so many pixels per image, which divide `pixels`.
struct NormSize {
  std::size_t pixels, channels, plane = 1;
  std::size_t elements() const { return pixels * channels; }
  cuda::NormPartition partition() const {
    return cuda::partition_norm(static_cast<std::int64_t>(pixels / plane),
                                static_cast<std::int64_t>(channels), static_cast<std::int64_t>(plane));
  }
  // From [pixels, channels] to the tensor's order, and back.
  Values held(const Values& values) const;
  Values read(const Values& held) const;
};
std::string text_of(DType dtype, const NormSize& size);

// More than one block combines at once.
inline constexpr NormSize kSeveralLevels{1100, 264}, kSeveralLevelsOfPlanes{34000, 2, 34000};
// NHWC in every storage type, NCHW in f32.
void for_all_norm_sizes(const std::function<void(DType, const NormSize&)>& check);

inline constexpr double kNormEpsilon = 1e-5;

struct NormMoments {
  Values mean, variance, inv_std;  // biased variance
};
NormMoments norm_moments(const Values& in, std::size_t channels);

// Before the ReLU; `residual` may be empty.
Values normalized(const Values& in, const NormMoments& moments, const Values& scale, const Values& bias,
                  const Values& residual);

struct NormGradients {
  Values d_in, d_scale, d_bias;
  double largest_sum = 0;  // largest sum of magnitudes in a channel's d_scale or d_bias
};
// `gradient`: of the output before the ReLU.
NormGradients norm_gradients(const Values& in, const Values& gradient, const NormMoments& moments,
                             const Values& scale);

// max(value, 0); and value where `passed` is not 0.
Values relu(Values values);
Values where(const Values& passed, Values values);
Values sum(Values a, const Values& b);
double largest(const Values& values);  // magnitude
// Bit i of byte k: values[8 k + i] > 0.
std::vector<std::uint8_t> bits_of_positive(const Values& values);

// Where the blocks of a pass with `sums` per channel meet. Checks on destruction that they left its counters
// at zero.
class NormMeeting {
 public:
  explicit NormMeeting(const cuda::NormPartition& partition, int sums = cuda::kNormSums);
  ~NormMeeting();
  cuda::NormScratch scratch() { return {partials_.as<float>(), counters_.as<unsigned>()}; }

 private:
  GuardedTensor partials_, counters_;
};

// Channel c has mean 0.5 c - 1 and standard deviation 1 + c / 4 (c modulo 8); values are exact in `dtype`.
Values norm_inputs(DType dtype, std::size_t pixels, std::size_t channels, std::uint64_t seed);

}  // namespace plumb
