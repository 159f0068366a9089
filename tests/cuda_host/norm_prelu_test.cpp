// The passes of a norm with a PReLU, and of one that adds to a gradient, on the emulated GPU against loops in
// double.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "kernels/cuda/norm.h"
#include "tests/cuda_host/guarded_tensor.h"
#include "tests/cuda_host/norm_reference.h"

namespace plumb::cuda {
namespace {

// Vectors of few images, tails of pixels and channels, several blocks and tiles; then planes.
constexpr NormSize kSizes[] = {{1, 8},         {2, 72},    {5, 512},    {513, 24},        {1569, 16},
                               {1569, 72},     {520, 264}, {1100, 264}, {50 * 49, 3, 49}, {3 * 784, 24, 784},
                               {1052, 5, 1052}};

template <typename Check>
void for_all_sizes(const Check& check) {
  for (DType dtype : kStorageTypes) {
    for (const NormSize& size : kSizes) {
      if (size.plane > 1 && dtype != DType::f32) continue;
      SCOPED_TRACE(text_of(dtype, size));
      check(dtype, size);
    }
  }
}
template <typename Check>
void for_all(const Check& check) {
  for_all_sizes([&](DType dtype, const NormSize& size) {
    for (const bool per_channel : {true, false}) {
      SCOPED_TRACE(per_channel ? "slopes" : "one slope");
      check(dtype, size, per_channel);
    }
  });
}

struct Inputs {
  Inputs(DType dtype, const NormSize& size, bool per_channel)
      : x(norm_inputs(dtype, size.pixels, size.channels, 31)),
        d_out(normal_values(dtype, size.elements(), 32)),
        scale(normal_values(DType::f32, size.channels, 33)),
        scale_shift(normal_values(DType::f32, 2 * size.channels, 34)),
        slopes(normal_values(DType::f32, per_channel ? size.channels : 1, 35)),
        moments(norm_moments(x, size.channels)) {
    moments.mean = rounded(DType::f32, moments.mean);
    moments.inv_std = rounded(DType::f32, moments.inv_std);
  }
  std::size_t channels() const { return scale.size(); }
  double slope(std::size_t i) const { return slopes[slopes.size() > 1 ? i % channels() : 0]; }
  double line(std::size_t i) const {
    return scale_shift[i % channels()] * x[i] + scale_shift[channels() + i % channels()];
  }
  Values x, d_out, scale, scale_shift, slopes;
  NormMoments moments;
};

TEST(NormPrelu, AppliesASlopeBelowZero) {
  for_all([](DType dtype, const NormSize& size, bool per_channel) {
    const Inputs inputs(dtype, size, per_channel);
    GuardedTensor in(dtype, size.held(inputs.x)), scale_shift(DType::f32, inputs.scale_shift),
        slope(DType::f32, inputs.slopes), out(dtype, size.elements());
    launch_norm_apply(size.partition(), dtype,
                      {.in = in.data(),
                       .scale_shift = scale_shift.as<float>(),
                       .out = out.data(),
                       .slope = {slope.as<float>(), per_channel}},
                      nullptr);
    Values wanted(size.elements());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double y = inputs.line(i);
      wanted[i] = y > 0 ? y : inputs.slope(i) * y;
    }
    const bool half = dtype != DType::f32;
    expect_close(size.read(out.values()), wanted, dtype, half ? 1.01 : 8, largest(wanted) / (half ? 64 : 1));
  });
}

struct BackwardRun {
  Values d_in, d_scale, d_bias, d_slope;
};
BackwardRun run_backward(DType dtype, const NormSize& size, const Inputs& inputs) {
  const NormPartition partition = size.partition();
  const bool per_channel = inputs.slopes.size() > 1;
  GuardedTensor x(dtype, size.held(inputs.x)), d_out(dtype, size.held(inputs.d_out)),
      scale_shift(DType::f32, inputs.scale_shift), slope(DType::f32, inputs.slopes),
      scale(DType::f32, inputs.scale), mean(DType::f32, inputs.moments.mean),
      inv_std(DType::f32, inputs.moments.inv_std), d_scale(DType::f32, size.channels),
      d_bias(DType::f32, size.channels), coefficients(DType::f32, 3 * size.channels),
      d_slopes(DType::f32, size.channels), d_slope(DType::f32, std::size_t{1}), d_in(dtype, size.elements());
  const NormGradient gradient{.in = x.data(),
                              .d_out = d_out.data(),
                              .scale_shift = scale_shift.data(),
                              .slope = {slope.as<float>(), per_channel}};
  NormMeeting meeting(partition, kMostNormSums);
  launch_norm_backward_sums(partition, dtype, gradient, nullptr, meeting.scratch(),
                            {.scale = scale.as<float>(),
                             .mean = mean.as<float>(),
                             .inv_std = inv_std.as<float>(),
                             .d_scale = d_scale.as<float>(),
                             .d_bias = d_bias.as<float>(),
                             .coefficients = coefficients.as<float>(),
                             .d_slope = d_slopes.as<float>(),
                             .d_shared_slope = per_channel ? nullptr : d_slope.as<float>()},
                            {}, nullptr);
  launch_norm_backward_apply(partition, dtype, gradient, coefficients.as<float>(), {.data = d_in.data()},
                             nullptr);
  return {size.read(d_in.values()), d_scale.values(), d_bias.values(),
          per_channel ? d_slopes.values() : d_slope.values()};
}

TEST(NormPrelu, GoesBackThroughTheSlopeAndGivesItAGradient) {
  for_all([](DType dtype, const NormSize& size, bool per_channel) {
    const Inputs inputs(dtype, size, per_channel);
    Values gradient = inputs.d_out, d_slope(inputs.slopes.size()), magnitudes(inputs.slopes.size());
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double y = inputs.line(i);
      if (y > 0) continue;
      const std::size_t place = per_channel ? i % size.channels : 0;
      d_slope[place] += gradient[i] * y;
      magnitudes[place] += std::abs(gradient[i] * y);
      gradient[i] *= inputs.slope(i);
    }
    const NormGradients wanted = norm_gradients(inputs.x, gradient, inputs.moments, inputs.scale);
    const BackwardRun made = run_backward(dtype, size, inputs);
    expect_close(made.d_bias, wanted.d_bias, DType::f32, 4, wanted.largest_sum);
    expect_close(made.d_scale, wanted.d_scale, DType::f32, 16, wanted.largest_sum);
    expect_close(made.d_slope, d_slope, DType::f32, 8, largest(magnitudes));
    const double magnitude = largest(inputs.scale) * largest(inputs.moments.inv_std) * largest(gradient);
    expect_close(made.d_in, wanted.d_in, dtype, dtype == DType::f32 ? 32 : 1,
                 magnitude / (dtype == DType::f32 ? 1 : 4));
  });
}

TEST(NormPrelu, RepeatsBitForBitInWhateverOrderThreadsAndBlocksRun) {
  const NormSize size{1100, 264};
  for (const bool per_channel : {true, false}) {
    const Inputs inputs(DType::f16, size, per_channel);
    const BackwardRun first = run_backward(DType::f16, size, inputs);
    for (int i = 0; i < 3; ++i) {  // the emulated GPU draws another order for every kernel
      const BackwardRun again = run_backward(DType::f16, size, inputs);
      EXPECT_EQ(again.d_in, first.d_in);
      EXPECT_EQ(again.d_slope, first.d_slope);
    }
  }
}

TEST(NormPrelu, GoesWithNeitherResidualNorReLU) {
  GuardedTensor any(DType::f32, Values(16, 1.0));
  const NormApply apply{.in = any.data(),
                        .scale_shift = any.as<float>(),
                        .out = any.data(),
                        .residual = any.data(),
                        .slope = {any.as<float>(), true}};
  EXPECT_THROW(launch_norm_apply(partition_norm(1, 8), DType::f32, apply, nullptr), std::logic_error);
}

TEST(NormBackwardApply, AddsToTheGradientThatIsThere) {
  for_all_sizes([](DType dtype, const NormSize& size) {
    const Inputs inputs(dtype, size, true);
    const Values there = normal_values(dtype, size.elements(), 36),
                 c = normal_values(DType::f32, 3 * size.channels, 37);
    GuardedTensor x(dtype, size.held(inputs.x)), d_out(dtype, size.held(inputs.d_out)),
        coefficients(DType::f32, c), d_in(dtype, size.held(there));
    launch_norm_backward_apply(size.partition(), dtype, {.in = x.data(), .d_out = d_out.data()},
                               coefficients.as<float>(), {.data = d_in.data(), .adds = true}, nullptr);
    Values wanted = there;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::size_t channel = i % size.channels;
      wanted[i] += c[channel] * inputs.d_out[i] + c[size.channels + channel] * inputs.x[i] +
                   c[2 * size.channels + channel];
    }
    expect_close(size.read(d_in.values()), wanted, dtype, dtype == DType::f32 ? 8 : 1.01,
                 dtype == DType::f32 ? 8 : 1);
  });
}

}  // namespace
}  // namespace plumb::cuda
