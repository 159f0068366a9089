// Random numbers as a pure function of (key, counter): the same values for any order, thread count or start.
// Generator: Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

namespace plumb {

using PhiloxKey = std::array<std::uint32_t, 2>;
using PhiloxBlock = std::array<std::uint32_t, 4>;  // a counter going in, 128 random bits coming out

constexpr PhiloxBlock philox4x32(PhiloxKey key, PhiloxBlock counter) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;  // table 2 and section 3.2
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

// The block of 128 random bits number `index` of a stream.
constexpr PhiloxBlock random_block(PhiloxKey key, std::uint64_t index) {
  return philox4x32(key, {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, 0});
}

// The key of the stream called `name` under a seed: names and seeds that differ give unrelated streams.
PhiloxKey stream_key(std::uint64_t seed, std::string_view name);

// Uniform in [0, 1), a multiple of 2^-24 (all that fp32 holds evenly spaced).
constexpr float uniform_from(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// Two independent N(0, 1) values from 64 random bits (Box and Muller, 1958). |value| <= 6.67. Logarithm and
// sines are sums of their series in plain arithmetic: loops over this vectorize, and every machine gets the
// same bits.
inline std::array<float, 2> normal_from(std::uint32_t bits0, std::uint32_t bits1) {
  // ln(x), x in (0, 1]: x = m 2^e with m in [2/3, 4/3), and ln(m) = 2 artanh((m - 1) / (m + 1)) to the 11th
  // order.
  constexpr std::uint32_t kTwoThirds = 0x3F2AAAAB;  // as fp32
  constexpr float kLn2 = 0.693147181F;
  const float x = (static_cast<float>(bits0) + 1) * 0x1p-32f;
  const std::uint32_t above = std::bit_cast<std::uint32_t>(x) - kTwoThirds;
  const auto exponent = static_cast<float>(static_cast<std::int32_t>(above) >> 23);
  const auto mantissa = std::bit_cast<float>((above & 0x7FFFFF) + kTwoThirds);
  const float s = (mantissa - 1) / (mantissa + 1), ss = s * s;
  const float series = 1 + ss * (1 / 3.F + ss * (1 / 5.F + ss * (1 / 7.F + ss * (1 / 9.F + ss / 11))));
  const float radius = std::sqrt(-2 * (exponent * kLn2 + 2 * s * series));

  // Quarter turns, and what is left of the angle: at most an eighth of a turn to either side.
  constexpr float kTwoPi = 6.283185307F;
  const float turn = uniform_from(bits1);
  const auto quarters = static_cast<std::int32_t>(4 * turn + 0.5F);  // NOLINT(bugprone-incorrect-roundings)
  const float t = kTwoPi * (turn - 0.25F * static_cast<float>(quarters)), tt = t * t;
  const float sine = t * (1 - tt / 6 * (1 - tt / 20 * (1 - tt / 42 * (1 - tt / 72))));
  const float cosine = 1 - tt / 2 * (1 - tt / 12 * (1 - tt / 30 * (1 - tt / 56 * (1 - tt / 90))));
  const bool swapped = (quarters & 1) != 0;
  const float of_cosine = swapped ? sine : cosine, of_sine = swapped ? cosine : sine;
  return {radius * (((quarters + 1) & 2) != 0 ? -of_cosine : of_cosine),
          radius * ((quarters & 2) != 0 ? -of_sine : of_sine)};
}

// out[i] comes from bits of block (first + i) / 4 of the stream, so a long sequence can be made in pieces.
// Uniform in [low, high); normal with the given mean and standard deviation.
void fill_uniform(PhiloxKey key, float low, float high, std::span<float> out, std::uint64_t first = 0);
void fill_normal(PhiloxKey key, float mean, float deviation, std::span<float> out, std::uint64_t first = 0);

}  // namespace plumb
