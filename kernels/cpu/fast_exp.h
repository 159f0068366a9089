// exp in a form that compilers turn into vector code.
#pragma once

#include <bit>
#include <cstdint>

namespace plumb::cpu {

// e^x for x <= 88.3 with a relative error below 2e-7; below -87 it is e^-87 = 1.6e-38, and NaN stays NaN.
// x = n ln 2 + r with |r| <= ln 2 / 2: 2^n as bits, e^r = 1 + r + r^2 q(r), where q is the polynomial of
// degree 4 with the smallest relative error of e^r (4e-9, by weighted least squares).
inline float fast_exp(float x) {
  constexpr float kLog2E = 1.44269504f;
  // ln 2 in two parts: n times the first is exact, as its last 9 bits are 0 and |n| < 128.
  constexpr float kLn2High = 0.693145752f, kLn2Low = 1.42860677e-6f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the last bits
  x = x < -87.0f ? -87.0f : x;
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  const float q =
      0.499999940f + r * (0.166665196f + r * (0.0416684002f + r * (0.00836885069f + r * 0.00138143206f)));
  const auto exponent = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRound);
  const float power = std::bit_cast<float>((exponent + 127) << 23);
  return (1.0f + (r + r * r * q)) * power;
}

}  // namespace plumb::cpu
