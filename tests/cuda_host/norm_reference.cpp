#include "tests/cuda_host/norm_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plumb {
namespace {

// One pixel, fewer than a thread block has rows, one and a bit of several blocks, more than one block
// combines at once; a group of 8 channels, three of them, several, more than one tile.
constexpr NormSize kSizes[] = {{1, 8},     {1, 72},    {7, 8},     {7, 24},    {7, 2048},  {513, 8},
                               {513, 24},  {513, 64},  {513, 72},  {1569, 16}, {1569, 24}, {1569, 64},
                               {1569, 72}, {130, 264}, {520, 512}, {98, 2048}, {1100, 264}};

// Planes that 4 divides and others; of less than a warp, one block and several, the last not full; one image,
// and more than one block of images; any number of channels.
constexpr NormSize kPlanes[] = {{4, 8, 4},         {49, 5, 49},         {3 * 49, 24, 49},
                                {50 * 49, 3, 49},  {2200 * 4, 1, 4},    {7 * 36, 72, 36},
                                {2 * 63, 24, 63},  {196, 16, 196},      {2 * 1052, 3, 1052},
                                {3 * 601, 2, 601}, {2 * 3136, 8, 3136}, kSeveralLevelsOfPlanes};

}  // namespace

Values NormSize::held(const Values& values) const {
  return transposed(values, plane, channels);
}

Values NormSize::read(const Values& held) const {
  return transposed(held, channels, plane);
}

std::string text_of(DType dtype, const NormSize& size) {
  return std::string(name_of(dtype)) + " " + std::to_string(size.pixels) + " x " +
         std::to_string(size.channels) + (size.plane > 1 ? ", planes of " + std::to_string(size.plane) : "");
}

void for_all_norm_sizes(const std::function<void(DType, const NormSize&)>& check) {
  for (const NormSize& size : kPlanes) {
    SCOPED_TRACE(text_of(DType::f32, size));
    check(DType::f32, size);
  }
  for (DType dtype : kStorageTypes) {
    for (const NormSize& size : kSizes) {
      SCOPED_TRACE(text_of(dtype, size));
      check(dtype, size);
    }
  }
}

NormMoments norm_moments(const Values& in, std::size_t channels) {
  const double pixels = static_cast<double>(in.size() / channels);
  NormMoments moments{Values(channels), Values(channels), Values(channels)};
  for (std::size_t i = 0; i < in.size(); ++i) moments.mean[i % channels] += in[i] / pixels;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double difference = in[i] - moments.mean[i % channels];
    moments.variance[i % channels] += difference * difference / pixels;
  }
  for (std::size_t c = 0; c < channels; ++c)
    moments.inv_std[c] = 1 / std::sqrt(moments.variance[c] + kNormEpsilon);
  return moments;
}

Values normalized(const Values& in, const NormMoments& moments, const Values& scale, const Values& bias,
                  const Values& residual) {
  Values out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t c = i % scale.size();
    out[i] = scale[c] * (in[i] - moments.mean[c]) * moments.inv_std[c] + bias[c];
    if (!residual.empty()) out[i] += residual[i];
  }
  return out;
}

NormGradients norm_gradients(const Values& in, const Values& gradient, const NormMoments& moments,
                             const Values& scale) {
  const std::size_t channels = scale.size();
  const double pixels = static_cast<double>(in.size() / channels);
  NormGradients result{Values(in.size()), Values(channels), Values(channels), 0};
  Values magnitudes(channels);
  const auto normal = [&](std::size_t i) {
    return (in[i] - moments.mean[i % channels]) * moments.inv_std[i % channels];
  };
  for (std::size_t i = 0; i < in.size(); ++i) {
    result.d_bias[i % channels] += gradient[i];
    result.d_scale[i % channels] += gradient[i] * normal(i);
    magnitudes[i % channels] += std::abs(gradient[i]) * std::max(1.0, std::abs(normal(i)));
  }
  result.largest_sum = largest(magnitudes);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t c = i % channels;
    result.d_in[i] = scale[c] * moments.inv_std[c] *
                     (gradient[i] - result.d_bias[c] / pixels - normal(i) * result.d_scale[c] / pixels);
  }
  return result;
}

Values relu(Values values) {
  for (double& value : values) value = std::max(value, 0.0);
  return values;
}

Values where(const Values& passed, Values values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (passed[i] == 0) values[i] = 0;
  }
  return values;
}

Values sum(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

double largest(const Values& values) {
  double result = 0;
  for (double value : values) result = std::max(result, std::abs(value));
  return result;
}

std::vector<std::uint8_t> bits_of_positive(const Values& values) {
  std::vector<std::uint8_t> bits((values.size() + 7) / 8);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 0) bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1U << i % 8);
  }
  return bits;
}

NormMeeting::NormMeeting(const cuda::NormPartition& partition, int sums)
    : partials_(DType::f32, cuda::norm_partials_bytes(partition, sums) / sizeof(float)),
      counters_(DType::i32, Values(static_cast<std::size_t>(cuda::norm_counters(partition)))) {}
NormMeeting::~NormMeeting() {
  EXPECT_EQ(counters_.values(), Values(counters_.elements()));
}

Values norm_inputs(DType dtype, std::size_t pixels, std::size_t channels, std::uint64_t seed) {
  Values values = normal_values(dtype, pixels * channels, seed);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double c = static_cast<double>(i % channels % 8);
    values[i] = values[i] * (1 + c / 4) + 0.5 * c - 1;
  }
  return rounded(dtype, std::move(values));
}

}  // namespace plumb
