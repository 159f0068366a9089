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
  EXPECT_EQ(odd->difference, "--bs=16 where the others have --bs=8");
}

TEST(Agreement, BetweenTwoRanksTheLowerOneIsRight) {
  const auto odd = find_odd_rank({"--bs=8\n", "--bs=16\n"});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->rank, 1u);
  EXPECT_EQ(odd->difference, "--bs=16 where the others have --bs=8");
}

TEST(Agreement, NamesTheFirstLineThatDiffers) {
  EXPECT_EQ(first_difference("a=1\nb=2\nc=3\n", "a=1\nb=4\nc=5\n"), "b=2 where the others have b=4");
}

TEST(Agreement, NamesALineThatOneSideLacks) {
  EXPECT_EQ(first_difference("a=1\nb=2\nc=3\n", "a=1\nc=3\n"), "b=2 where the others have no b");
  EXPECT_EQ(first_difference("a=1\nc=3\n", "a=1\nb=2\nc=3\n"), "no b where the others have b=2");
}

TEST(Agreement, TextsOfAnotherFormAreQuoted) {
  EXPECT_EQ(
      first_difference("bench 0.1.0 (commit 402f18, Release)\ncompiler: GNU\n", "commit=b3d6ca\nversion=1\n"),
      "'bench 0.1.0 (commit 402f18, Release)' where the others have 'commit=b3d6ca'");
}

TEST(Agreement, ARankWhoseBuildNamesNoHostIsOfAnotherCommit) {
  EXPECT_EQ(
      disagreement("build", {3, "'n4 0-7' where the others have 'commit=2'"}, ""),
      "rank 3 runs a program of another commit: it reports 'n4 0-7' where the others have 'commit=2'; start "
      "every rank with the same build");
}

TEST(Agreement, ValuesMayHoldEqualSigns) {
  EXPECT_EQ(first_difference("flags=-O2 -std=c++20\n", "flags=-O2 -std=c++17\n"),
            "flags=-O2 -std=c++20 where the others have flags=-O2 -std=c++17");
}

TEST(Agreement, AnotherOrderIsNamedToo) {
  const auto odd = find_odd_rank({"a=1\nb=2\n", "b=2\na=1\n"});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->difference, "the same entries as the others, in another order or number");
}

TEST(Agreement, SentenceNamesRankHostDifferenceAndRemedy) {
  const OddRank odd{1, first_difference("seed=3\n", "seed=0\n")};
  EXPECT_EQ(
      disagreement("options", odd, "node2"),
      "rank 1 on node2 has seed=3 where the others have seed=0; start every rank with the same options");
  EXPECT_EQ(
      disagreement("Program", {1, "hash=1 where the others have hash=2"}, "node2"),
      "rank 1 on node2 has another Program, hash=1 where the others have hash=2; use hosts with the same "
      "CPU, or set DNNL_MAX_CPU_ISA alike on all");
}

}  // namespace
}  // namespace plumb
