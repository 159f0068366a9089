// The forward passes of batch norm on the emulated GPU, one by one, against loops in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cuda/norm.h"
#include "tests/cuda_host/guarded_tensor.h"
#include "tests/cuda_host/norm_reference.h"

namespace plumb::cuda {
namespace {

// Operands of the statistics, and their results.
struct Statistics {
  explicit Statistics(std::size_t channels, DType scale_shift_dtype = DType::f32)
      : scale(DType::f32, normal_values(DType::f32, channels, 11)),
        bias(DType::f32, normal_values(DType::f32, channels, 12)),
        running_mean(DType::f32, normal_values(DType::f32, channels, 13)),
        running_variance(DType::f32, Values(channels, 2.0)),
        mean(DType::f32, channels),
        inv_std(DType::f32, channels),
        scale_shift(scale_shift_dtype, 2 * channels) {}

  NormStatistics operands() {
    return {.scale = scale.as<float>(),
            .bias = bias.as<float>(),
            .running_mean = running_mean.as<float>(),
            .running_variance = running_variance.as<float>(),
            .mean = mean.as<float>(),
            .inv_std = inv_std.as<float>(),
            .scale_shift = scale_shift.data(),
            .scale_shift_dtype = scale_shift.dtype(),
            .epsilon = static_cast<float>(kNormEpsilon),
            .momentum = 0.25F};
  }
  // As they are for values of this size with these moments.
  void expect(const NormMoments& wanted, std::size_t pixels, double magnitude) const {
    const double n = static_cast<double>(pixels);
    Values running = normal_values(DType::f32, wanted.mean.size(), 13), running_square,
           factor = scale.values(), offset = bias.values();
    for (std::size_t c = 0; c < running.size(); ++c) {
      running[c] = 0.75 * running[c] + 0.25 * wanted.mean[c];
      running_square.push_back(0.75 * 2 + 0.25 * wanted.variance[c] * (n > 1 ? n / (n - 1) : 1));
      factor[c] *= wanted.inv_std[c];
      offset[c] -= wanted.mean[c] * factor[c];
    }
    expect_close(mean.values(), wanted.mean, DType::f32, 8, magnitude);
    expect_close(inv_std.values(), wanted.inv_std, DType::f32, 64);
    expect_close(running_mean.values(), running, DType::f32, 8, magnitude);
    expect_close(running_variance.values(), running_square, DType::f32, 64);
    Values both = factor;
    both.insert(both.end(), offset.begin(), offset.end());
    expect_close(scale_shift.values(), both, scale_shift.dtype(), 64, magnitude * largest(factor));
  }

  GuardedTensor scale, bias, running_mean, running_variance, mean, inv_std, scale_shift;
};

void run_statistics(DType dtype, const NormSize& size, const Values& in, Statistics& into) {
  GuardedTensor x(dtype, size.held(in));
  NormMeeting meeting(size.partition());
  launch_norm_statistics(size.partition(), dtype, x.data(), meeting.scratch(), into.operands(), nullptr);
}

TEST(NormStatistics, AreMeanVarianceAndWhatFollows) {
  for_all_norm_sizes([](DType dtype, const NormSize& size) {
    const Values in = norm_inputs(dtype, size.pixels, size.channels, 1);
    Statistics statistics(size.channels);
    run_statistics(dtype, size, in, statistics);
    statistics.expect(norm_moments(in, size.channels), size.pixels, largest(in));
  });
}

// The second moment is a million times the variance: in f32 nothing is left of their difference.
TEST(NormStatistics, KeepASmallVarianceBesideALargeMean) {
  for (const NormSize& size : {NormSize{5000, 16}, {5000, 72}, {100 * 49, 16, 49}, {2 * 3136, 3, 3136}}) {
    Values in = normal_values(DType::f32, size.elements(), 2);
    for (double& value : in) value = rounded(DType::f32, 100 + 0.1 * value);
    in[0] = 0;  // neither does the first element help to guess the mean
    Statistics statistics(size.channels);
    run_statistics(DType::f32, size, in, statistics);
    const NormMoments wanted = norm_moments(in, size.channels);
    const Values inv_std = statistics.inv_std.values();
    for (std::size_t c = 0; c < size.channels; ++c) {
      const double variance = 1 / (inv_std[c] * inv_std[c]) - kNormEpsilon;
      EXPECT_NEAR(variance / wanted.variance[c], 1, 1e-3) << "channel " << c;
    }
  }
}

TEST(NormStatistics, RepeatBitForBitInWhateverOrderThreadsAndBlocksRun) {
  const NormSize size = kSeveralLevels;
  const Values in = norm_inputs(DType::f16, size.pixels, size.channels, 3);
  Statistics first(size.channels);
  run_statistics(DType::f16, size, in, first);
  for (int i = 0; i < 3; ++i) {  // the emulated GPU draws another order for every kernel
    Statistics again(size.channels);
    run_statistics(DType::f16, size, in, again);
    EXPECT_EQ(again.mean.bytes(), first.mean.bytes());
    EXPECT_EQ(again.inv_std.bytes(), first.inv_std.bytes());
  }
}

TEST(NormFinalize, TakesSumsThatAConvolutionMade) {
  for (DType scale_shift_dtype : {DType::f32, DType::f16}) {
    for (std::size_t channels : {8, 72, 304}) {
      const std::size_t pixels = 513;
      const Values in = norm_inputs(DType::f16, pixels, channels, 4);
      Values sums(2 * channels);
      for (std::size_t i = 0; i < in.size(); ++i) {
        sums[i % channels] += in[i];
        sums[channels + i % channels] += in[i] * in[i];
      }
      GuardedTensor given(DType::f32, sums);
      Statistics statistics(channels, scale_shift_dtype);
      launch_norm_finalize(pixels, static_cast<int>(channels), given.as<float>(), statistics.operands(),
                           nullptr);
      statistics.expect(norm_moments(in, channels), pixels, largest(in));
    }
  }
}

enum class Residual { none, stored, raw };  // raw: with scale_shift of its own
struct ApplyCase {
  Residual residual;
  bool relu, mask;
};

void check_apply(DType dtype, const NormSize& size, const ApplyCase& which) {
  const Values x = norm_inputs(dtype, size.pixels, size.channels, 5);
  const Values added = normal_values(dtype, size.elements(), 6);
  const Values scale_shift = normal_values(DType::f32, 2 * size.channels, 7);
  const Values of_residual = normal_values(DType::f32, 2 * size.channels, 8);
  const bool is_raw = which.residual == Residual::raw;
  GuardedTensor in(dtype, size.held(x)), residual(dtype, size.held(added)), given(DType::f32, scale_shift),
      given_of_residual(DType::f32, of_residual), out(dtype, size.elements()),
      mask(DType::u8, (size.elements() + 7) / 8);
  launch_norm_apply(size.partition(), dtype,
                    {.in = in.data(),
                     .scale_shift = given.as<float>(),
                     .out = out.data(),
                     .residual = which.residual == Residual::none ? nullptr : residual.data(),
                     .residual_scale_shift = is_raw ? given_of_residual.as<float>() : nullptr,
                     .mask = which.mask ? mask.as<std::uint8_t>() : nullptr,
                     .relu = which.relu},
                    nullptr);
  Values wanted(size.elements());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::size_t c = i % size.channels;
    wanted[i] = scale_shift[c] * x[i] + scale_shift[size.channels + c];
    if (which.residual == Residual::stored) wanted[i] += added[i];
    if (is_raw) wanted[i] += of_residual[c] * added[i] + of_residual[size.channels + c];
  }
  const Values made = size.read(out.values());
  const bool half = dtype != DType::f32;
  expect_close(made, which.relu ? relu(wanted) : wanted, dtype, half ? 1.01 : 8,
               largest(wanted) / (half ? 64 : 1));
  if (!which.mask) return;
  std::vector<std::uint8_t> bits(mask.elements());
  const Values held = mask.values();
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint8_t>(held[i]);
  EXPECT_EQ(bits, bits_of_positive(made));
}

TEST(NormApply, NormalisesAddsActivatesAndKeepsWhatPassed) {
  for_all_norm_sizes([](DType dtype, const NormSize& size) {
    using enum Residual;
    const bool mask = size.plane == 1;
    check_apply(dtype, size, {.residual = none, .relu = true, .mask = mask});
    check_apply(dtype, size, {.residual = stored, .relu = true, .mask = mask});
    check_apply(dtype, size, {.residual = raw, .relu = true, .mask = mask});
    check_apply(dtype, size, {.residual = none, .relu = true, .mask = false});
    check_apply(dtype, size, {.residual = stored, .relu = false, .mask = false});
    check_apply(dtype, size, {.residual = raw, .relu = false, .mask = false});
  });
}

TEST(NormApply, LetsANotANumberThrough) {
  constexpr std::size_t kChannels = 8;
  Values x(2 * kChannels, 1.0);
  x[1] = std::numeric_limits<double>::quiet_NaN();
  GuardedTensor in(DType::f32, x), scale_shift(DType::f32, Values(2 * kChannels, -1.0)),
      out(DType::f32, 2 * kChannels), mask(DType::u8, 2 * kChannels / 8);
  launch_norm_apply(partition_norm(2, kChannels), DType::f32,
                    {.in = in.data(),
                     .scale_shift = scale_shift.as<float>(),
                     .out = out.data(),
                     .mask = mask.as<std::uint8_t>(),
                     .relu = true},
                    nullptr);
  EXPECT_TRUE(std::isnan(out.values()[1]));
  EXPECT_EQ(out.values()[2], 0);
  EXPECT_EQ(mask.values()[0], 2);
}

// Replays of a captured step find the counters as the launch before left them.
TEST(NormBlocks, MeetAgainAndAgainAtTheSameCounters) {
  for (const NormSize& size : {kSeveralLevels, kSeveralLevelsOfPlanes}) {
    const DType dtype = size.plane == 1 ? DType::f16 : DType::f32;
    const NormPartition partition = size.partition();
    EXPECT_GT(partition.partial_blocks(), kNormFanIn);
    const Values in = norm_inputs(dtype, size.pixels, size.channels, 9);
    GuardedTensor x(dtype, size.held(in));
    NormMeeting meeting(partition);
    Statistics first(size.channels);
    launch_norm_statistics(partition, dtype, x.data(), meeting.scratch(), first.operands(), nullptr);
    for (int i = 0; i < 3; ++i) {
      Statistics again(size.channels);
      launch_norm_statistics(partition, dtype, x.data(), meeting.scratch(), again.operands(), nullptr);
      EXPECT_EQ(again.scale_shift.bytes(), first.scale_shift.bytes());
    }
  }
}
}  // namespace
}  // namespace plumb::cuda
