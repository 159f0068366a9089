#include <numeric>

#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

using AllGather = MpiTest;
using Gather = MpiTest;
using Sum = MpiTest;
using Broadcast = MpiTest;

// Rank 0 contributes nothing, rank 1 one byte, and so on, including zero bytes.
std::string text_of(int rank) {
  return std::string(static_cast<std::size_t>(rank), rank % 2 ? '\0' : 'x');
}

TEST_F(AllGather, KeepsTextsOfDifferentLengthsApart) {
  const std::vector<std::string> texts = job().all_gather(text_of(job().rank()));
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(job().size()));
  for (int rank = 0; rank < job().size(); ++rank) {
    EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text_of(rank));
  }
}

TEST_F(AllGather, AllMayBeEmpty) {
  EXPECT_EQ(job().all_gather(""), std::vector<std::string>(static_cast<std::size_t>(job().size())));
}

TEST_F(AllGather, LongTextsArriveWhole) {
  const std::string mine(3'000'000 + static_cast<std::size_t>(job().rank()), 'a');
  const std::vector<std::string> texts = job().all_gather(mine);
  EXPECT_EQ(texts.back().size(), 3'000'000u + static_cast<std::size_t>(job().size()) - 1);
  EXPECT_EQ(texts.back().find_first_not_of('a'), std::string::npos);
}

TEST_F(Gather, GivesRankZeroEveryonesNumbersInOrder) {
  const double rank = job().rank();
  const std::vector<double> all = job().gather({rank, 10 * rank});
  if (job().rank() > 0) {
    EXPECT_TRUE(all.empty());
    return;
  }
  ASSERT_EQ(all.size(), 2 * static_cast<std::size_t>(job().size()));
  for (std::size_t i = 0; i < all.size(); i += 2) {
    EXPECT_EQ(all[i], static_cast<double>(i / 2));
    EXPECT_EQ(all[i + 1], 10 * static_cast<double>(i / 2));
  }
}

TEST_F(Sum, AddsElementByElementOnEveryRank) {
  const double rank = job().rank(), size = job().size();
  EXPECT_EQ(job().sum({1, rank, -0.5}), (std::vector<double>{size, size * (size - 1) / 2, -0.5 * size}));
  EXPECT_TRUE(job().sum({}).empty());
}

TEST_F(Broadcast, GivesRankZerosValuesToAll) {
  std::vector<float> values(100'003);
  std::iota(values.begin(), values.end(), static_cast<float>(1000 * job().rank()));
  job().broadcast(values.data(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(i));
  std::uint64_t number = 0x123456789abcdef0ull + static_cast<std::uint64_t>(job().rank());
  job().broadcast(number);
  EXPECT_EQ(number, 0x123456789abcdef0ull);
}

TEST_F(Broadcast, GivesRankZerosBytesToAll) {
  std::vector<std::byte> bytes(128, std::byte(job().rank() + 1));
  job().broadcast(std::span(bytes));
  EXPECT_EQ(bytes, std::vector<std::byte>(128, std::byte(1)));
}

TEST_F(Broadcast, OfNothingIsNothing) {
  job().broadcast(nullptr, 0);
  job().broadcast(std::span<std::byte>());
}

}  // namespace
}  // namespace plumb
