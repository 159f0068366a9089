#include "bench/data/shuffled_order.h"

#include <algorithm>
#include <bit>

namespace plumb {

ShuffledOrder::ShuffledOrder(std::uint64_t seed, std::uint64_t count)
    : key_(stream_key(seed, "order of images")),
      count_(count),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(count - 1)) + 1) / 2)) {}

std::uint64_t ShuffledOrder::at(std::uint64_t epoch, std::uint64_t position) const {
  std::uint64_t number = position;
  do number = permuted(epoch, number);
  while (number >= count_);
  return number;
}

std::uint64_t ShuffledOrder::permuted(std::uint64_t epoch, std::uint64_t number) const {
  constexpr std::uint32_t kRounds = 10;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = number >> half_bits_, right = number & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxBlock bits =
        philox4x32(key_, {static_cast<std::uint32_t>(right), round, static_cast<std::uint32_t>(epoch),
                          static_cast<std::uint32_t>(epoch >> 32)});
    const std::uint64_t next = left ^ (bits[0] & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace plumb
