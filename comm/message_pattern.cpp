#include "comm/message_pattern.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace plumb {
namespace {

constexpr int kMostValues = 13;  // few enough to be exact over many ranks; prime
constexpr int kRankStep = 17;    // between neighboring ranks; shares no factor with up to 13 values

// The largest integer up to which the dtype holds all: significands have 8, 11 and 24 bits.
int exact_up_to(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 1 << 8;
    case DType::f16:
      return 1 << 11;
    case DType::u8:
      return (1 << 8) - 1;
    default:
      return 1 << 24;
  }
}

template <typename T>
T convert(int value) {
  return static_cast<T>(value);
}
template <typename T>
double as_number(T value) {
  return static_cast<double>(value);
}

// The upper half of an fp32, exact for small integers.
struct BFloat {
  std::uint16_t bits;
};
template <>
BFloat convert<BFloat>(int value) {
  return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16)};
}
template <>
double as_number(BFloat value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

// Calls `use` with a value of the C++ type of the dtype.
template <typename Use>
auto with_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::f32:
      return use(float{});
    case DType::f16:
      return use(_Float16{});
    case DType::bf16:
      return use(BFloat{});
    case DType::i32:
      return use(std::int32_t{});
    case DType::i64:
      return use(std::int64_t{});
    case DType::u8:
      break;
  }
  return use(std::uint8_t{});
}

}  // namespace

MessagePattern::MessagePattern(const Collective& collective, int rank, int world_size)
    : collective_(collective),
      moves_(collective.kind == Collective::Kind::allgather ||
             collective.kind == Collective::Kind::broadcast),
      rank_(rank),
      size_(world_size) {
  const int limit = exact_up_to(collective.dtype);
  contributing_ranks_ = std::min(world_size, limit);
  values_ = std::clamp(limit / contributing_ranks_ + 1, 2, kMostValues);
  reduced_.assign(static_cast<std::size_t>(values_), 0);
  const bool takes_maximum = collective.kind == Collective::Kind::allreduce_max;
  for (int place = 0; place < values_; ++place)
    for (int other = 0; other < contributing_ranks_; ++other) {
      int& all = reduced_[static_cast<std::size_t>(place)];
      const int one = (place + kRankStep * other) % values_;
      all = takes_maximum ? std::max(all, one) : all + one;
    }
}

// Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): neighbors get unrelated values.
std::size_t MessagePattern::place(std::size_t element) const {
  constexpr int kHashBits = 24;
  const std::uint64_t hash = (std::uint64_t{element} * 0x9E3779B97F4A7C15u) >> (64 - kHashBits);
  return static_cast<std::size_t>((hash * static_cast<std::uint64_t>(values_)) >> kHashBits);
}

int MessagePattern::value(std::size_t element, int rank) const {
  if (rank >= contributing_ranks_) return 0;
  return (static_cast<int>(place(element)) + kRankStep * rank) % values_;
}

int MessagePattern::owner(std::size_t element) const {
  return static_cast<int>(element / (collective_.elements / static_cast<std::size_t>(size_)));
}

int MessagePattern::before(std::size_t element) const {
  const bool overwritten = (collective_.kind == Collective::Kind::allgather && owner(element) != rank_) ||
                           (collective_.kind == Collective::Kind::broadcast && rank_ != 0);
  return overwritten ? values_ : value(element, rank_);
}

std::optional<int> MessagePattern::after(std::size_t element) const {
  switch (collective_.kind) {
    case Collective::Kind::allgather:
      return value(element, owner(element));
    case Collective::Kind::broadcast:
      return value(element, 0);
    case Collective::Kind::reduce_scatter_sum:
      if (owner(element) != rank_) return std::nullopt;
      break;
    case Collective::Kind::allreduce_sum:
    case Collective::Kind::allreduce_max:
      break;
  }
  return reduced_[place(element)];
}

void MessagePattern::fill(std::span<std::byte> bytes, std::size_t first) const {
  with_type(collective_.dtype, [&]<typename T>(T) {
    std::array<T, kMostValues> mine{};
    for (int place = 0; place < values_ && rank_ < contributing_ranks_; ++place)
      mine[static_cast<std::size_t>(place)] = convert<T>((place + kRankStep * rank_) % values_);
    for (std::size_t i = 0; i * sizeof(T) < bytes.size(); ++i) {
      const T converted = moves_ ? convert<T>(before(first + i)) : mine[place(first + i)];
      std::memcpy(bytes.data() + i * sizeof(T), &converted, sizeof converted);
    }
  });
}

MessagePattern::Wrong MessagePattern::check(std::span<const std::byte> bytes, std::size_t first) const {
  Wrong wrong;
  with_type(collective_.dtype, [&]<typename T>(T) {
    std::array<T, kMostValues> reduced{};
    std::ranges::transform(reduced_, reduced.begin(), convert<T>);
    for (std::size_t i = 0; i * sizeof(T) < bytes.size(); ++i) {
      T found{};
      std::memcpy(&found, bytes.data() + i * sizeof(T), sizeof found);
      // Bits, not values. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
      if (!moves_ && std::memcmp(&found, &reduced[place(first + i)], sizeof found) == 0) continue;
      const std::optional<int> wanted = after(first + i);
      if (!wanted || as_number(found) == *wanted) continue;
      if (wrong.elements++ == 0)
        wrong = {.elements = 1,
                 .first = first + i,
                 .found = as_number(found),
                 .wanted = static_cast<double>(*wanted)};
    }
  });
  return wrong;
}

}  // namespace plumb
