#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <vector>

namespace plumb {
namespace {

// Known answers published with the generator's reference implementation (Random123, kat_vectors).
TEST(Philox, MatchesPublishedKnownAnswers) {
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({0, 0}, {0, 0, 0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({kOnes, kOnes}, {kOnes, kOnes, kOnes, kOnes}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, StreamsDifferByNameAndBySeed) {
  std::set<PhiloxKey> keys;
  for (std::uint64_t seed : {0ULL, 1ULL, 2ULL, 1ULL << 63}) {
    for (const char* name : {"", "a", "b", "ab", "ba"}) keys.insert(stream_key(seed, name));
  }
  EXPECT_EQ(keys.size(), 20U);
  EXPECT_EQ(stream_key(7, "conv1.weight"), stream_key(7, "conv1.weight"));
}

TEST(Random, UniformStaysBelowOneAndNormalStaysFiniteAtTheEdges) {
  EXPECT_EQ(uniform_from(0), 0);
  EXPECT_LT(uniform_from(0xffffffff), 1);
  for (std::uint32_t bits : {0U, 1U, 0x80000000U, 0xfffffffeU, 0xffffffffU}) {
    for (std::uint32_t angle : {0U, 0x40000000U, 0xffffffffU}) {
      for (float value : normal_from(bits, angle)) EXPECT_LE(std::abs(value), 6.67F) << bits << " " << angle;
    }
  }
}

TEST(Random, NormalIsBoxAndMullersInDoublePrecision) {
  const PhiloxKey key = stream_key(5, "exact");
  for (std::uint64_t index = 0; index < 100000; ++index) {
    const PhiloxBlock bits = random_block(key, index);
    // Half of the radii are small ones: there the logarithm nears 0.
    const std::uint32_t radius_bits = index % 2 == 0 ? bits[0] : 0xffffffff - (bits[0] >> (bits[2] % 32));
    const double x = (static_cast<double>(static_cast<float>(radius_bits)) + 1) * 0x1p-32;
    const double radius = std::sqrt(-2 * std::log(static_cast<float>(x)));
    const double angle = 2 * std::numbers::pi * uniform_from(bits[1]);
    const auto [cosine, sine] = normal_from(radius_bits, bits[1]);
    ASSERT_NEAR(cosine, radius * std::cos(angle), 3e-7 * radius) << radius_bits << " " << bits[1];
    ASSERT_NEAR(sine, radius * std::sin(angle), 3e-7 * radius) << radius_bits << " " << bits[1];
  }
}

TEST(Random, FillsScaleTheNumbersOfTheKeysBlocksInOrder) {
  const PhiloxKey key = stream_key(1, "fills");
  std::vector<float> uniform(4 << 16), normal(uniform.size());
  fill_uniform(key, -2, 6, uniform);
  fill_normal(key, 3, 0.5F, normal);
  EXPECT_LT(*std::max_element(uniform.begin(), uniform.end()), 6);
  for (std::size_t i = 0; i < uniform.size(); ++i) {
    const PhiloxBlock bits = random_block(key, i / 4);
    ASSERT_NEAR(uniform[i], -2 + 8.0 * bits[i % 4] / 0x1p32, 1e-6) << i;
    const std::size_t pair = i % 4 / 2 * 2;
    ASSERT_NEAR(normal[i], 3 + 0.5 * normal_from(bits[pair], bits[pair + 1])[i % 2], 1e-6) << i;
  }
}

TEST(Random, AFillIsTheSameWholeAndInPiecesThatBeginAnywhere) {
  const PhiloxKey key = stream_key(3, "pieces");
  for (const bool normal : {false, true}) {
    const auto fill = [&](std::span<float> out, std::uint64_t first) {
      return normal ? fill_normal(key, 0, 1, out, first) : fill_uniform(key, -1, 1, out, first);
    };
    std::vector<float> whole(103), pieces(103);
    fill(whole, 0);
    std::size_t begin = 0;
    for (const std::size_t length : {40, 1, 2, 3, 1, 4, 5, 0, 47}) {
      fill(std::span(pieces).subspan(begin, length), begin);
      begin += length;
    }
    ASSERT_EQ(begin, whole.size());
    EXPECT_EQ(whole, pieces);
  }
}

}  // namespace
}  // namespace plumb
