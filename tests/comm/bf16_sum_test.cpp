#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "comm/half_sum.h"

namespace plumb {
namespace {

float widened(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// The nearer of the two neighbors of `exact` (double represents it exactly), or the even one.
std::uint16_t nearest_bf16(double exact) {
  const auto toward_zero =
      static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(exact)) >> 16);
  std::uint16_t best = toward_zero;
  for (std::uint16_t candidate : {toward_zero, static_cast<std::uint16_t>(toward_zero + 1)}) {
    const double error = std::abs(static_cast<double>(widened(candidate)) - exact);
    const double best_error = std::abs(static_cast<double>(widened(best)) - exact);
    if (error < best_error || (error == best_error && candidate % 2 == 0)) best = candidate;
  }
  return best;
}

TEST(Bf16Sum, IsTheNearestBf16ForEveryFiniteNumber) {
  for (float other : {0.0f, 1.0f, -1.00390625f, 0.333f, -1000.0f, 1e-30f}) {
    const auto addend = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(other) >> 16);
    std::vector<std::uint16_t> numbers;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      // The very largest values round to infinity, which has no neighbor to compare with.
      if (std::abs(widened(static_cast<std::uint16_t>(bits))) < 3e38f)
        numbers.push_back(static_cast<std::uint16_t>(bits));
    }
    std::vector<std::uint16_t> sums(numbers.size(), addend);
    add_bf16(numbers.data(), sums.data(), sums.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const float f32_sum = widened(numbers[i]) + widened(addend);
      ASSERT_EQ(widened(sums[i]), widened(nearest_bf16(static_cast<double>(f32_sum))))
          << widened(numbers[i]) << " + " << other;
    }
  }
}

TEST(Bf16Sum, HalfwayGoesToTheEvenNumber) {
  // Above 256 bfloat16 represents even numbers only.
  std::vector<std::uint16_t> into{0x4380, 0x4381};        // 256, 258
  const std::vector<std::uint16_t> from{0x3f80, 0x3f80};  // 1, 1
  add_bf16(from.data(), into.data(), into.size());
  EXPECT_EQ(widened(into[0]), 256.0f);
  EXPECT_EQ(widened(into[1]), 260.0f);
}

TEST(Bf16Sum, LeavesTheRangeAtInfinityAndKeepsNotANumber) {
  std::vector<std::uint16_t> into{0x7f7f, 0x7fc1, 0x7f80, 0x7f81};        // largest, NaN, inf, signalling NaN
  const std::vector<std::uint16_t> from{0x7f7f, 0x3f80, 0xff80, 0x3f80};  // largest, 1, -inf, 1
  add_bf16(from.data(), into.data(), into.size());
  EXPECT_EQ(widened(into[0]), std::numeric_limits<float>::infinity());
  for (std::size_t i : {1, 2, 3}) EXPECT_TRUE(std::isnan(widened(into[i]))) << i;
}

TEST(Bf16Sum, TouchesNoElementPastTheEnd) {
  for (std::size_t count : {0, 1, 7, 8, 9, 31}) {
    std::vector<std::uint16_t> from(64, 0x3f80), into(64, 0x4000);  // 1, 2
    add_bf16(from.data(), into.data(), count);
    for (std::size_t i = 0; i < into.size(); ++i) EXPECT_EQ(widened(into[i]), i < count ? 3.0f : 2.0f);
  }
}

}  // namespace
}  // namespace plumb
