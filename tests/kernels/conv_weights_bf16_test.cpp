// Backward-weights by VDPBF16PS on its own, against sums in double precision.
#include "kernels/cpu/conv_weights_bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "base/text.h"

namespace plumb::cpu {
namespace {

template <typename T>
using Aligned = std::unique_ptr<T[], decltype(&std::free)>;

template <typename T>
Aligned<T> aligned(std::int64_t count) {
  const auto bytes = (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
  return {static_cast<T*>(std::aligned_alloc(64, bytes)), &std::free};
}

Aligned<Bf16> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 bits(seed);
  Aligned<Bf16> values = aligned<Bf16>(count);
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = from_float<Bf16>(static_cast<float>(bits()) / 2147483648.0f - 1.0f);
  return values;
}

// Of nChw16c.
std::int64_t place(std::int64_t channels, std::int64_t pixels, std::int64_t image, std::int64_t channel,
                   std::int64_t pixel) {
  return ((image * channels / 16 + channel / 16) * pixels + pixel) * 16 + channel % 16;
}

struct Sum {
  double value = 0, of_sizes = 0;
};

Sum expected(const ConvShape& s, const Bf16* in, const Bf16* d_out, std::int64_t o, std::int64_t i,
             std::int64_t ky, std::int64_t kx) {
  Sum sum;
  for (std::int64_t n = 0; n < s.images; ++n)
    for (std::int64_t y = 0; y < s.out_height; ++y)
      for (std::int64_t x = 0; x < s.out_width; ++x) {
        const std::int64_t in_y = y * s.stride + ky - s.padding, in_x = x * s.stride + kx - s.padding;
        if (in_y < 0 || in_x < 0 || in_y >= s.in_height || in_x >= s.in_width) continue;
        const double product =
            static_cast<double>(to_float(
                in[place(s.in_channels, s.in_height * s.in_width, n, i, in_y * s.in_width + in_x)])) *
            to_float(d_out[place(s.out_channels, s.out_height * s.out_width, n, o, y * s.out_width + x)]);
        sum.value += product;
        sum.of_sizes += std::abs(product);
      }
  return sum;
}

class SumWeightsBf16 : public testing::TestWithParam<ConvShape> {};

TEST_P(SumWeightsBf16, MatchesSumsInDoubleForAnyNumberOfThreads) {
  if (!__builtin_cpu_supports("avx512bf16")) GTEST_SKIP() << "this CPU has no AVX512_BF16";
  const ConvShape& s = GetParam();
  const Aligned<Bf16> in = random_values(s.images * s.in_channels * s.in_height * s.in_width, 1);
  const Aligned<Bf16> d_out = random_values(s.images * s.out_channels * s.out_height * s.out_width, 2);
  const std::int64_t taps = s.kernel * s.kernel, weights = s.out_channels * s.in_channels * taps;
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    const Aligned<float> d_weight = aligned<float>(weights);
    std::fill_n(d_weight.get(), weights, NAN);  // what was there doesn't matter
    const auto bytes = static_cast<std::int64_t>(sum_weights_bf16_workspace(s, threads));
    const Aligned<std::byte> workspace = aligned<std::byte>(bytes);
    sum_weights_bf16(s, threads, in.get(), d_out.get(), d_weight.get(), workspace.get());
    const std::vector<float> sums(d_weight.get(), d_weight.get() + weights);
    if (first.empty()) first = sums;
    ASSERT_EQ(sums, first) << threads << " threads";
  }
  std::mt19937 bits(1);
  for (std::int64_t at = 0; at < weights; at += 1 + static_cast<std::int64_t>(bits()) % (weights / 500 + 1)) {
    const std::int64_t o = at / 256 / taps / (s.in_channels / 16) * 16 + at % 16;
    const std::int64_t i = at / 256 / taps % (s.in_channels / 16) * 16 + at / 16 % 16, tap = at / 256 % taps;
    const Sum sum = expected(s, in.get(), d_out.get(), o, i, tap / s.kernel, tap % s.kernel);
    ASSERT_NEAR(first[static_cast<std::size_t>(at)], sum.value, 1e-5 * sum.of_sizes) << "element " << at;
  }
}

ConvShape shape_of(std::int64_t images, std::int64_t in_channels, std::int64_t out_channels,
                   std::int64_t height, std::int64_t width, std::int64_t kernel, std::int64_t stride) {
  const std::int64_t padding = kernel / 2;
  const auto out = [&](std::int64_t side) { return (side + 2 * padding - kernel) / stride + 1; };
  return {.images = images,
          .in_channels = in_channels,
          .in_height = height,
          .in_width = width,
          .out_channels = out_channels,
          .out_height = out(height),
          .out_width = out(width),
          .kernel = kernel,
          .stride = stride,
          .padding = padding};
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SumWeightsBf16,
    testing::Values(shape_of(1, 16, 32, 1, 1, 1, 1),    // one pixel, half a pair
                    shape_of(3, 48, 96, 7, 7, 1, 1),    // pairs across images, the last one half
                    shape_of(2, 32, 64, 30, 29, 1, 1),  // several chunks, rows of odd length
                    shape_of(2, 16, 1120, 5, 5, 1, 1),  // more panels of d_out than at a time
                    shape_of(2, 64, 32, 9, 8, 1, 2),    // stride, the last row and column unread
                    shape_of(2, 32, 64, 21, 23, 3, 1),  // padding on all sides, several chunks
                    shape_of(2, 32, 32, 9, 10, 3, 2),
                    shape_of(1, 16, 32, 3, 2, 7, 1)),  // kernel larger than the image
    [](const auto& tested) {
      const ConvShape& s = tested.param;
      return fmt::format("{}x{}x{}x{}To{}Kernel{}Stride{}", s.images, s.in_channels, s.in_height, s.in_width,
                         s.out_channels, s.kernel, s.stride);
    });

}  // namespace
}  // namespace plumb::cpu
