// The CPU's batch norm loops on their own: every layout gives what row-major tensors give, which
// tests/conformance checks, with every combination of inputs.
#include "kernels/cpu/norm_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/threads.h"

namespace plumb::cpu {
namespace {

using Floats = std::vector<float>;

struct Case {
  ChannelLayout layout;
  Activation activation = Activation::none;
  bool residual = false, second = false, one_slope = false;
  bool has_d_residual() const { return residual && (second || activation == Activation::relu); }
};

// Logical tensors, [n][c][pixel].
struct Tensors {
  Floats in, residual, d_out, d_second;  // one per element
  Floats scale, bias, slope, running_mean, running_variance;
};

Tensors tensors_of(const Case& c) {
  std::mt19937 bits(11);
  const auto numbers = [&](std::int64_t count, double center) {
    Floats values(static_cast<std::size_t>(count));
    for (float& value : values)
      value = static_cast<float>(center + static_cast<double>(bits()) / 2147483648.0 - 1.0);
    return values;
  };
  const std::int64_t channels = c.layout.channels, elements = c.layout.images * channels * c.layout.pixels;
  return {numbers(elements, 0.3),
          numbers(elements, 0),
          numbers(elements, 0),
          numbers(elements, 0),
          numbers(channels, 1),
          numbers(channels, 0),
          numbers(c.one_slope ? 1 : channels, 0),
          numbers(channels, 0),
          numbers(channels, 2)};
}

std::size_t held_elements(const ChannelLayout& layout) {
  return static_cast<std::size_t>(layout.images * layout.image_stride());
}
// Calls visit(logical index, place in memory, channel) for every element.
template <typename Visit>
void for_each_element(const ChannelLayout& layout, Visit visit) {
  std::size_t logical = 0;
  for (std::int64_t n = 0; n < layout.images; ++n)
    for (std::int64_t c = 0; c < layout.channels; ++c)
      for (std::int64_t p = 0; p < layout.pixels; ++p)
        visit(logical++, static_cast<std::size_t>(n * layout.image_stride() + layout.offset(c, p)),
              static_cast<std::size_t>(c));
}
template <typename T>
std::vector<T> packed(const ChannelLayout& layout, const Floats& logical) {
  std::vector<T> held(held_elements(layout), T{});
  for_each_element(layout, [&](auto from, auto to, auto) { held[to] = from_float<T>(logical[from]); });
  return held;
}
// In logical order; padding must be 0.
template <typename T>
Floats unpacked(const ChannelLayout& layout, std::vector<T> held) {
  Floats logical;
  for_each_element(layout, [&](auto, auto from, auto) {
    logical.push_back(to_float(held[from]));
    held[from] = T{};
  });
  EXPECT_TRUE(held == std::vector<T>(held.size(), T{})) << "padding";
  return logical;
}

struct Results {
  Floats out, mean, inv_std, running_mean, running_variance;
  Floats d_in, d_residual, d_scale, d_bias, d_slope;
  bool operator==(const Results&) const = default;
};

template <typename T = float>
Results run(const Case& c, const Tensors& tensors, NormOrder order) {
  const ChannelLayout& layout = c.layout;
  const NormTiling tiling = *norm_tiling(layout);
  const bool prelu = c.activation == Activation::prelu;
  const auto channels = static_cast<std::size_t>(layout.channels);
  const NormForm form{.tiling = tiling,
                      .activation = c.activation,
                      .order = order,
                      .one_slope = c.one_slope,
                      .elements = static_cast<double>(layout.images * layout.pixels)};
  const float unset = std::numeric_limits<float>::quiet_NaN();
  const auto in = packed<T>(layout, tensors.in), residual = packed<T>(layout, tensors.residual);
  const auto d_out = packed<T>(layout, tensors.d_out), d_second = packed<T>(layout, tensors.d_second);
  std::vector<T> out(in.size(), from_float<T>(unset)), d_in = out, d_residual = out;
  Results r{.mean = Floats(channels, unset),
            .inv_std = Floats(channels, unset),
            .running_mean = tensors.running_mean,
            .running_variance = tensors.running_variance,
            .d_scale = Floats(channels, unset),
            .d_bias = Floats(channels, unset),
            .d_slope = Floats(prelu ? tensors.slope.size() : 0, unset)};
  std::vector<LaneSums> sums(static_cast<std::size_t>(kBackwardSums * tiling.groups * tiling.slices));
  norm_forward<T>({.form = form,
                   .in = in.data(),
                   .scale = tensors.scale.data(),
                   .bias = tensors.bias.data(),
                   .residual = c.residual ? residual.data() : nullptr,
                   .slope = prelu ? tensors.slope.data() : nullptr,
                   .running_mean = r.running_mean.data(),
                   .running_variance = r.running_variance.data(),
                   .out = out.data(),
                   .mean = r.mean.data(),
                   .inv_std = r.inv_std.data(),
                   .sums = sums.data()});
  norm_backward<T>({.form = form,
                    .in = in.data(),
                    .d_out = d_out.data(),
                    .scale = tensors.scale.data(),
                    .bias = tensors.bias.data(),
                    .mean = r.mean.data(),
                    .inv_std = r.inv_std.data(),
                    .out = c.residual && c.activation == Activation::relu ? out.data() : nullptr,
                    .d_second = c.second ? d_second.data() : nullptr,
                    .slope = prelu ? tensors.slope.data() : nullptr,
                    .d_in = d_in.data(),
                    .d_scale = r.d_scale.data(),
                    .d_bias = r.d_bias.data(),
                    .d_residual = c.has_d_residual() ? d_residual.data() : nullptr,
                    .d_slope = prelu ? r.d_slope.data() : nullptr,
                    .sums = sums.data()});
  r.out = unpacked(layout, out);
  r.d_in = unpacked(layout, d_in);
  if (c.has_d_residual()) r.d_residual = unpacked(layout, d_residual);
  return r;
}

// Within `tolerance` of each tensor's largest magnitude.
void expect_near(const Results& results, const Results& others, double tolerance) {
  for (Floats Results::*const one :
       {&Results::out, &Results::mean, &Results::inv_std, &Results::running_mean, &Results::running_variance,
        &Results::d_in, &Results::d_residual, &Results::d_scale, &Results::d_bias, &Results::d_slope}) {
    const Floats &found = results.*one, &expected = others.*one;
    ASSERT_EQ(found.size(), expected.size());
    float largest = 0, error = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_FALSE(std::isnan(found[i])) << i;
      largest = std::max(largest, std::abs(expected[i]));
      error = std::max(error, std::abs(found[i] - expected[i]));
    }
    EXPECT_LE(error, tolerance * largest + 1e-6);
  }
}

std::vector<Case> cases_in(const ChannelLayout& layout) {
  std::vector<Case> all;
  for (bool second : {false, true}) {
    for (Activation activation : {Activation::none, Activation::relu})
      for (bool residual : {false, true}) all.push_back({layout, activation, residual, second});
    for (bool one_slope : {false, true}) all.push_back({layout, Activation::prelu, false, second, one_slope});
  }
  return all;
}

// Channels that fill blocks or don't, pixels that fill rows of 16 or don't; blocks of 8 and 16, channels
// last.
std::vector<ChannelLayout> layouts() {
  std::vector<ChannelLayout> all{
      {.images = 5, .channels = 16, .pixels = 900, .block = 16}};  // several slices
  for (std::int64_t channels : {5, 32, 37})
    for (std::int64_t pixels : {1, 25, 160})
      for (std::int64_t block : {std::int64_t{8}, std::int64_t{16}, channels})
        all.push_back({.images = 3, .channels = channels, .pixels = pixels, .block = block});
  return all;
}

TEST(NormLoops, GiveTheSameInEveryLayout) {
  for (const ChannelLayout& layout : layouts())
    for (const Case& c : cases_in(layout)) {
      SCOPED_TRACE(testing::Message()
                   << layout.channels << " channels in blocks of " << layout.block << ", " << layout.pixels
                   << " pixels, activation " << static_cast<int>(c.activation));
      Case plain = c;
      plain.layout.block = 1;
      const Tensors tensors = tensors_of(c);
      constexpr NormOrder kOrder{.groups_at_once = 2};
      expect_near(run(c, tensors, kOrder), run(plain, tensors, kOrder), 1e-5);
      expect_near(run<Bf16>(c, tensors, kOrder), run<Bf16>(plain, tensors, kOrder), 1.0 / 128);
      if (testing::Test::HasFailure()) return;
    }
}

TEST(Bf16, RoundsToNearestEven) {
  const float quiet = std::numeric_limits<float>::quiet_NaN(), most = std::numeric_limits<float>::max();
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<float, std::uint16_t>> cases{
      {0.0f, 0},         {-0.0f, 0x8000},        {1.0f, 0x3f80}, {1.00390625f, 0x3f80}, {1.01171875f, 0x3f82},
      {1.0042f, 0x3f81}, {-1.01171875f, 0xbf82}, {most, 0x7f80}, {infinite, 0x7f80},    {-infinite, 0xff80},
      {quiet, 0x7fc0},   {1e-40f, 0x0001}};
  for (const auto& [value, bits] : cases) {
    EXPECT_EQ(from_float<Bf16>(value).bits, bits) << value;
  }
}

TEST(NormLoops, GiveTheSameBitsForAnyNumberOfThreadsAndOrderOfGroups) {
  for (const ChannelLayout& layout : {ChannelLayout{.images = 5, .channels = 37, .pixels = 900, .block = 16},
                                      {.images = 3, .channels = 37, .pixels = 160, .block = 37}})
    for (const Case& c : cases_in(layout)) {
      const Tensors tensors = tensors_of(c);
      use_threads(1);
      const Results alone = run(c, tensors, {.group_by_group = true});
      use_threads(3);
      EXPECT_TRUE(run(c, tensors, {.groups_at_once = 2}) == alone);
      EXPECT_TRUE(run(c, tensors, {.group_by_group = true}) == alone);
    }
  use_threads(2);
}

}  // namespace
}  // namespace plumb::cpu
