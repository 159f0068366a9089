#include "comm/message_pattern.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

namespace plumb {
namespace {

using Bytes = std::vector<std::byte>;
using Kind = Collective::Kind;

Bytes filled(const Collective& collective, int rank, int ranks) {
  Bytes bytes(collective.elements * bytes_of(collective.dtype));
  MessagePattern(collective, rank, ranks).fill(bytes);
  return bytes;
}

float element(const Bytes& bytes, DType dtype, std::size_t index) {
  if (dtype == DType::f32) {
    float value = 0;
    std::memcpy(&value, &bytes[4 * index], 4);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, &bytes[2 * index], 2);
  return dtype == DType::bf16 ? std::bit_cast<float>(std::uint32_t{bits} << 16)
                              : static_cast<float>(std::bit_cast<_Float16>(bits));
}

void set_element(Bytes& bytes, DType dtype, std::size_t index, float value) {
  if (dtype == DType::f32) {
    std::memcpy(&bytes[4 * index], &value, 4);
    return;
  }
  const std::uint16_t bits = dtype == DType::bf16
                                 ? static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16)
                                 : std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
  std::memcpy(&bytes[2 * index], &bits, 2);
}

// The sum over ranks of what they hold, in the dtype, one rank after the other.
Bytes summed(const Collective& collective, int ranks) {
  Bytes sum = filled(collective, 0, ranks);
  for (int rank = 1; rank < ranks; ++rank) {
    const Bytes other = filled(collective, rank, ranks);
    for (std::size_t i = 0; i < collective.elements; ++i)
      set_element(sum, collective.dtype, i,
                  element(sum, collective.dtype, i) + element(other, collective.dtype, i));
  }
  return sum;
}

TEST(MessagePattern, SumsAreExactInEveryDtypeOverManyRanks) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const int ranks : {1, 2, 3, 8, 300, 3000}) {
      const Collective collective{.kind = Kind::allreduce_sum, .elements = 40, .dtype = dtype};
      const Bytes sum = summed(collective, ranks);
      EXPECT_EQ(MessagePattern(collective, ranks - 1, ranks).check(sum).elements, 0u)
          << name_of(dtype) << " over " << ranks;
    }
}

TEST(MessagePattern, OneDamagedElementIsFoundWhereverItIs) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Collective collective{.kind = Kind::allreduce_sum, .elements = 1000, .dtype = dtype};
    for (const std::size_t at : {0u, 499u, 999u}) {
      Bytes sum = summed(collective, 4);
      const float right = element(sum, dtype, at);
      set_element(sum, dtype, at, right + 1);
      const MessagePattern::Wrong wrong = MessagePattern(collective, 2, 4).check(sum);
      EXPECT_EQ(wrong, (MessagePattern::Wrong{1, at, right + 1.0, right})) << name_of(dtype);
    }
  }
}

TEST(MessagePattern, NotANumberIsWrong) {
  const Collective collective{.kind = Kind::allreduce_sum, .elements = 4};
  Bytes sum = summed(collective, 2);
  set_element(sum, DType::f32, 1, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(MessagePattern(collective, 0, 2).check(sum).elements, 1u);
}

TEST(MessagePattern, ElementsThatChangedPlacesAreFound) {
  const Collective collective{.kind = Kind::allreduce_sum, .elements = 4096};
  Bytes sum = summed(collective, 2);
  std::swap_ranges(sum.begin(), sum.begin() + 4096, sum.begin() + 8192);
  EXPECT_GT(MessagePattern(collective, 0, 2).check(sum).elements, 1000u);
}

TEST(MessagePattern, NothingIsRightBeforeItWasSent) {
  for (const Kind kind : {Kind::allreduce_sum, Kind::allgather, Kind::reduce_scatter_sum, Kind::broadcast}) {
    const Collective collective{.kind = kind, .elements = 400};
    const Bytes unsent = filled(collective, 1, 2);
    EXPECT_GT(MessagePattern(collective, 1, 2).check(unsent).elements, 100u) << name_of(kind);
  }
}

TEST(MessagePattern, GathersHaveEveryRanksPartAndBroadcastsRankZeros) {
  for (const DType dtype : {DType::u8, DType::i32, DType::i64, DType::f16}) {
    const Collective gather{.kind = Kind::allgather, .elements = 30, .dtype = dtype};
    Bytes gathered = filled(gather, 0, 3);
    const std::size_t part = gathered.size() / 3;
    for (int rank = 1; rank < 3; ++rank) {
      const Bytes own = filled(gather, rank, 3);
      const auto begin = static_cast<std::ptrdiff_t>(part) * rank;
      std::copy_n(own.begin() + begin, part, gathered.begin() + begin);
    }
    EXPECT_EQ(MessagePattern(gather, 2, 3).check(gathered).elements, 0u);
    const Collective broadcast{.kind = Kind::broadcast, .elements = 30, .dtype = dtype};
    EXPECT_EQ(MessagePattern(broadcast, 2, 3).check(filled(broadcast, 0, 3)).elements, 0u);
  }
}

TEST(MessagePattern, OtherRanksPartsOfAReduceScatterMayHoldAnything) {
  const Collective scatter{.kind = Kind::reduce_scatter_sum, .elements = 20};
  Bytes sum = summed(scatter, 2);
  set_element(sum, DType::f32, 3, -1);  // of rank 0
  EXPECT_EQ(MessagePattern(scatter, 0, 2).check(sum).elements, 1u);
  EXPECT_EQ(MessagePattern(scatter, 1, 2).check(sum).elements, 0u);
}

TEST(MessagePattern, PiecesAreFilledAndCheckedAsTheWhole) {
  const Collective collective{.kind = Kind::allreduce_sum, .elements = 100};
  const Bytes whole = filled(collective, 1, 2), sum = summed(collective, 2);
  const MessagePattern pattern(collective, 1, 2);
  Bytes piece(40 * 4);
  pattern.fill(piece, 60);
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + 60 * 4));
  EXPECT_EQ(pattern.check(std::span(sum).subspan(60 * 4), 60).elements, 0u);
  EXPECT_GT(pattern.check(std::span(sum).subspan(60 * 4), 61).elements, 0u);
}

}  // namespace
}  // namespace plumb
