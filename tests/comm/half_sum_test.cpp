#include "comm/half_sum.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/program/program.h"

namespace plumb {
namespace {

using Halves = std::vector<std::uint16_t>;  // bits of f16 or bf16

constexpr DType kHalves[] = {DType::f16, DType::bf16};

float widened(DType dtype, std::uint16_t bits) {
  if (dtype == DType::bf16) return std::bit_cast<float>(std::uint32_t{bits} << 16);
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}

// The nearest f16 or bf16, the even one of two; double represents `exact` exactly.
std::uint16_t nearest(DType dtype, double exact) {
  if (dtype == DType::f16) return std::bit_cast<std::uint16_t>(static_cast<_Float16>(exact));
  const auto toward_zero =
      static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(exact)) >> 16);
  std::uint16_t best = toward_zero;
  for (const std::uint16_t candidate : {toward_zero, static_cast<std::uint16_t>(toward_zero + 1)}) {
    const double error = std::abs(widened(dtype, candidate) - exact),
                 best_error = std::abs(widened(dtype, best) - exact);
    if (error < best_error || (error == best_error && candidate % 2 == 0)) best = candidate;
  }
  return best;
}

// Adds the first `count` of `from` to `into`.
Halves summed(DType dtype, const Halves& from, Halves into, std::size_t count) {
  if (dtype == DType::bf16) {
    add_bf16(from.data(), into.data(), count);
    return into;
  }
  std::vector<_Float16> left(from.size()), right(into.size());
  std::memcpy(left.data(), from.data(), 2 * from.size());
  std::memcpy(right.data(), into.data(), 2 * into.size());
  add_f16(left.data(), right.data(), count);
  std::memcpy(into.data(), right.data(), 2 * into.size());
  return into;
}
Halves summed(DType dtype, const Halves& from, const Halves& into) {
  return summed(dtype, from, into, into.size());
}

TEST(HalfSum, IsTheNearestNumberForEveryNumber) {
  for (const DType dtype : kHalves)
    for (const float other :
         {0.0f, 1.0f, -1.00390625f, -2049.0f / 2048, 0.333f, 65504.0f, -1000.0f, 1e-30f}) {
      const std::uint16_t addend = nearest(dtype, other);
      Halves numbers;
      for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
        // The very largest bf16 round to infinity, which has no neighbor to compare with.
        if (dtype == DType::f16 || std::abs(widened(dtype, static_cast<std::uint16_t>(bits))) < 3e38f)
          numbers.push_back(static_cast<std::uint16_t>(bits));
      const Halves sums = summed(dtype, numbers, Halves(numbers.size(), addend));
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const float one = widened(dtype, numbers[i]), addition = widened(dtype, addend);
        // A double represents the sum of any two f16 exactly; of bf16 a float is rounded.
        const double sum = dtype == DType::f16 ? double{one} + double{addition} : double{one + addition};
        const float wanted = widened(dtype, nearest(dtype, sum)), got = widened(dtype, sums[i]);
        ASSERT_TRUE(got == wanted || (std::isnan(got) && std::isnan(wanted)))
            << one << " + " << other << " in " << name_of(dtype);
      }
    }
}

TEST(HalfSum, OfBf16LeavesTheRangeAtInfinityAndKeepsNotANumber) {
  const Halves into{0x7f7f, 0x7fc1, 0x7f80, 0x7f81},  // largest, NaN, infinity, signalling NaN
      from{0x7f7f, 0x3f80, 0xff80, 0x3f80};           // largest, 1, -infinity, 1
  const Halves sums = summed(DType::bf16, from, into);
  EXPECT_EQ(widened(DType::bf16, sums[0]), std::numeric_limits<float>::infinity());
  for (const std::size_t i : {1, 2, 3}) EXPECT_TRUE(std::isnan(widened(DType::bf16, sums[i]))) << i;
}

TEST(HalfSum, TouchesNoElementPastTheEnd) {
  for (const DType dtype : kHalves)
    for (const std::size_t count : {0, 1, 7, 8, 9, 31}) {
      const Halves sums = summed(dtype, Halves(64, nearest(dtype, 1)), Halves(64, nearest(dtype, 2)), count);
      for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(widened(dtype, sums[i]), i < count ? 3 : 2);
    }
}

}  // namespace
}  // namespace plumb
