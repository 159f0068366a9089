#include "comm/agreement.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

TEST(Agreement, EqualTextsHaveNoOddRank) {
  EXPECT_FALSE(find_odd_rank({"--bs=8\n", "--bs=8\n", "--bs=8\n"}));
  EXPECT_FALSE(find_odd_rank({"--bs=8\n"}));
  EXPECT_FALSE(find_odd_rank({"", ""}));
}

TEST(Agreement, TheMinorityIsOdd) {
  const auto odd = find_odd_rank({"--bs=16\n", "--bs=8\n", "--bs=8\n"});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->rank, 0u);
  EXPECT_EQ(odd->difference, "--bs=16 here, --bs=8 there");
}

TEST(Agreement, BetweenTwoRanksTheLowerOneIsRight) {
  const auto odd = find_odd_rank({"--bs=8\n", "--bs=16\n"});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->rank, 1u);
  EXPECT_EQ(odd->difference, "--bs=16 here, --bs=8 there");
}

TEST(Agreement, NamesTheFirstLineThatDiffers) {
  EXPECT_EQ(first_difference("a=1\nb=2\nc=3\n", "a=1\nb=4\nc=5\n"), "b=2 here, b=4 there");
}

TEST(Agreement, NamesALineThatOneSideLacks) {
  EXPECT_EQ(first_difference("a=1\nb=2\nc=3\n", "a=1\nc=3\n"), "b=2 here, no b there");
  EXPECT_EQ(first_difference("a=1\nc=3\n", "a=1\nb=2\nc=3\n"), "no b here, b=2 there");
}

TEST(Agreement, ValuesMayHoldEqualSigns) {
  EXPECT_EQ(first_difference("flags=-O2 -std=c++20\n", "flags=-O2 -std=c++17\n"),
            "flags=-O2 -std=c++20 here, flags=-O2 -std=c++17 there");
}

TEST(Agreement, AnotherOrderIsNamedToo) {
  const auto odd = find_odd_rank({"a=1\nb=2\n", "b=2\na=1\n"});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->difference, "the same entries, in another order or number");
}

}  // namespace
}  // namespace plumb
