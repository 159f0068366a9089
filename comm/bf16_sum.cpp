#include <bit>

#include "comm/half_sum.h"

namespace plumb {
namespace {

float widened(std::uint16_t number) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(number) << 16);
}

std::uint16_t rounded(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  // Adds half a unit in the last kept place, minus one if that place is even; may carry to infinity.
  const std::uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const std::uint32_t quiet = bits >> 16 | 0x40;
  const bool not_a_number = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<std::uint16_t>(not_a_number ? quiet : nearest);
}

}  // namespace

void add_bf16(const std::uint16_t* from, std::uint16_t* into, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] = rounded(widened(from[i]) + widened(into[i]));
}

}  // namespace plumb
