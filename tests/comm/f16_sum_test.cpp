#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "comm/half_sum.h"

namespace plumb {
namespace {

std::vector<_Float16> every_f16() {
  std::vector<_Float16> all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    all.push_back(std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits)));
  }
  return all;
}

// double represents the sum of any two f16 numbers exactly: one rounding.
TEST(F16Sum, IsTheNearestF16ForEveryNumber) {
  const std::vector<_Float16> all = every_f16();
  for (float other : {0.0f, 1.0f, -2049.0f / 2048, 6e-8f, 0.333f, 65504.0f, -1000.0f}) {
    const _Float16 addend = static_cast<_Float16>(other);
    std::vector<_Float16> sums(all.size(), addend);
    add_f16(all.data(), sums.data(), sums.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto exact =
          static_cast<double>(static_cast<float>(all[i])) + static_cast<double>(static_cast<float>(addend));
      const auto wanted = static_cast<float>(static_cast<_Float16>(exact));
      const auto got = static_cast<float>(sums[i]);
      ASSERT_TRUE(got == wanted || (std::isnan(got) && std::isnan(wanted))) << i << " + " << other;
    }
  }
}

TEST(F16Sum, TouchesNoElementPastTheEnd) {
  for (std::size_t count : {0, 1, 7, 8, 9, 31}) {
    std::vector<_Float16> from(64, _Float16(1)), into(64, _Float16(2));
    add_f16(from.data(), into.data(), count);
    for (std::size_t i = 0; i < into.size(); ++i)
      EXPECT_EQ(static_cast<float>(into[i]), i < count ? 3.0f : 2.0f);
  }
}

}  // namespace
}  // namespace plumb
