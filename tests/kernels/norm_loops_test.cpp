// The CPU's batch norm loops on their own, in every layout and with every combination of inputs, against
// naive loops in double precision.
#include "kernels/cpu/norm_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/cpu/threads.h"
#include "tests/kernels/tensors.h"

namespace plumb::cpu {
namespace {

using Floats = std::vector<float>;

struct Case {
  ChannelLayout layout;
  Activation activation = Activation::none;
  bool residual = false, second = false, one_slope = false;
  double mean = 0.3;  // of the input; its standard deviation is near 0.6
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
  return {numbers(elements, c.mean),
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
  std::vector<LaneSums> sums(std::max(norm_forward_sums(tiling), norm_backward_sums(tiling)));
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

struct Truth {
  Doubles out, mean, inv_std, running_mean, running_variance;
  Doubles d_in, d_residual, d_scale, d_bias, d_slope;
};

Truth truth_of(const Case& c, const Tensors& t) {
  const auto channels = static_cast<std::size_t>(c.layout.channels);
  const auto m = static_cast<double>(c.layout.images * c.layout.pixels);
  Truth r{.out = Doubles(t.in.size()),
          .mean = Doubles(channels),
          .inv_std = Doubles(channels),
          .running_mean = to_double(t.running_mean),
          .running_variance = to_double(t.running_variance),
          .d_in = Doubles(t.in.size()),
          .d_scale = Doubles(channels),
          .d_bias = Doubles(channels),
          .d_slope = Doubles(c.activation == Activation::prelu ? t.slope.size() : 0)};
  Doubles variance(channels), passed(t.in.size());
  for_each_element(c.layout, [&](auto i, auto, auto k) { r.mean[k] += t.in[i] / m; });
  for_each_element(c.layout, [&](auto i, auto, auto k) {
    variance[k] += (t.in[i] - r.mean[k]) * (t.in[i] - r.mean[k]) / m;
  });
  for (std::size_t k = 0; k < channels; ++k) {
    r.inv_std[k] = 1 / std::sqrt(variance[k] + 1e-5);
    r.running_mean[k] += 0.1 * (r.mean[k] - r.running_mean[k]);
    r.running_variance[k] += 0.1 * (variance[k] * (m > 1 ? m / (m - 1) : 1) - r.running_variance[k]);
  }
  const auto normalized = [&](auto i, auto k) { return (t.in[i] - r.mean[k]) * r.inv_std[k]; };
  for_each_element(c.layout, [&](auto i, auto, auto k) {
    const double value = t.scale[k] * normalized(i, k) + t.bias[k] + (c.residual ? t.residual[i] : 0.0);
    const std::size_t which = c.one_slope ? 0 : k;
    const double below = c.activation == Activation::none   ? 1.0
                         : c.activation == Activation::relu ? 0.0
                                                            : static_cast<double>(t.slope[which]);
    const double d_out = t.d_out[i] + (c.second ? t.d_second[i] : 0.0);
    r.out[i] = value > 0 ? value : below * value;
    passed[i] = value > 0 ? d_out : below * d_out;
    if (c.activation == Activation::prelu && value <= 0) r.d_slope[which] += d_out * value;
    r.d_bias[k] += passed[i];
    r.d_scale[k] += passed[i] * normalized(i, k);
  });
  for_each_element(c.layout, [&](auto i, auto, auto k) {
    r.d_in[i] =
        t.scale[k] * r.inv_std[k] * (passed[i] - r.d_bias[k] / m - normalized(i, k) * r.d_scale[k] / m);
  });
  if (c.has_d_residual()) r.d_residual = passed;
  return r;
}

void expect_near(const Floats& actual, const Doubles& truth, const char* name, double relative = 1e-5) {
  ASSERT_EQ(actual.size(), truth.size()) << name;
  double largest = 0;
  for (double value : truth) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < truth.size(); ++i)
    ASSERT_NEAR(actual[i], truth[i], relative * largest + 1e-6) << name << '[' << i << ']';
}

// `stored`: what rounding of stored elements allows.
void expect_matches(const Results& actual, const Truth& truth, double stored = 1e-5) {
  expect_near(actual.out, truth.out, "out", stored);
  expect_near(actual.mean, truth.mean, "mean");
  expect_near(actual.inv_std, truth.inv_std, "inverse deviation", 1e-6);
  expect_near(actual.running_mean, truth.running_mean, "running mean");
  expect_near(actual.running_variance, truth.running_variance, "running variance");
  expect_near(actual.d_in, truth.d_in, "d_in", stored);
  expect_near(actual.d_residual, truth.d_residual, "d_residual", stored);
  expect_near(actual.d_scale, truth.d_scale, "d_scale");
  expect_near(actual.d_bias, truth.d_bias, "d_bias");
  expect_near(actual.d_slope, truth.d_slope, "d_slope");
}

// Channel counts that fill blocks or don't, pixel counts that fill rows of 16 or don't; nchw, blocks of 8 and
// 16, channels last, vectors.
std::vector<ChannelLayout> layouts() {
  std::vector<ChannelLayout> all;
  for (std::int64_t channels : {5, 32, 37})
    for (std::int64_t pixels : {1, 25, 160})
      for (std::int64_t block : {std::int64_t{1}, std::int64_t{8}, std::int64_t{16}, channels})
        all.push_back({.images = 3, .channels = channels, .pixels = pixels, .block = block});
  all.push_back({.images = 5, .channels = 16, .pixels = 900, .block = 16});  // several slices
  all.push_back({.images = 1, .channels = 1, .pixels = 9000, .block = 1});
  return all;
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

TEST(NormLoops, MatchDoublePrecisionInEveryLayoutAndCombination) {
  for (const ChannelLayout& layout : layouts())
    for (const Case& c : cases_in(layout)) {
      SCOPED_TRACE(testing::Message()
                   << layout.channels << " channels in blocks of " << layout.block << ", " << layout.pixels
                   << " pixels, activation " << static_cast<int>(c.activation)
                   << (c.residual ? ", residual" : "") << (c.second ? ", two gradients" : "")
                   << (c.one_slope ? ", one slope" : ""));
      const Tensors tensors = tensors_of(c);
      expect_matches(run(c, tensors, {.groups_at_once = 2}), truth_of(c, tensors));
      if (testing::Test::HasFatalFailure()) return;
    }
}

// Inputs are exact in bf16, so statistics and sums are those of double precision. What is stored has 8
// bits; d_in may come from a stored d_residual.
TEST(NormLoops, InBf16RoundOnlyWhatTheyStore) {
  const double stored = std::ldexp(1.0, -7);
  for (const ChannelLayout& layout : layouts())
    for (const Case& c : cases_in(layout)) {
      SCOPED_TRACE(testing::Message()
                   << layout.channels << " channels in blocks of " << layout.block << ", " << layout.pixels
                   << " pixels, activation " << static_cast<int>(c.activation));
      Tensors tensors = tensors_of(c);
      for (Floats* one : {&tensors.in, &tensors.residual, &tensors.d_out, &tensors.d_second})
        for (float& value : *one) value = to_float(from_float<Bf16>(value));
      expect_matches(run<Bf16>(c, tensors, {.groups_at_once = 2}), truth_of(c, tensors), stored);
      if (testing::Test::HasFatalFailure()) return;
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

TEST(NormLoops, KeepTheVarianceWhereTheMeanIsLarge) {
  const Case c{.layout = {.images = 4, .channels = 8, .pixels = 400, .block = 8}, .mean = 1000};
  const Tensors tensors = tensors_of(c);
  expect_near(run(c, tensors, {.groups_at_once = 2}).inv_std, truth_of(c, tensors).inv_std,
              "inverse deviation", 1e-6);
}

}  // namespace
}  // namespace plumb::cpu
