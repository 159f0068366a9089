#include "comm/agreement.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace plumb {
namespace {

// The message for ranks on hosts n0, n1 and so on; empty if all agree.
std::string told_of(const std::string& what, const std::vector<std::string>& texts) {
  std::vector<std::string> hosts;
  while (hosts.size() < texts.size()) hosts.push_back(fmt::format("n{}", hosts.size()));
  return disagreement(what, texts, hosts).value_or("");
}

TEST(Agreement, EqualTextsHaveNoOddRank) {
  EXPECT_EQ(told_of("options", {"--bs=8\n", "--bs=8\n", "--bs=8\n"}), "");
  EXPECT_EQ(told_of("options", {"--bs=8\n"}), "");
  EXPECT_EQ(told_of("options", {"", ""}), "");
}

TEST(Agreement, TheMinorityIsOdd) {
  EXPECT_TRUE(told_of("options", {"--bs=16\n", "--bs=8\n", "--bs=8\n"})
                  .starts_with("rank 0 on n0 has --bs=16 where the others have --bs=8"));
}

TEST(Agreement, BetweenTwoRanksTheLowerOneIsRight) {
  EXPECT_TRUE(told_of("options", {"--bs=8\n", "--bs=16\n"})
                  .starts_with("rank 1 on n1 has --bs=16 where the others have --bs=8"));
}

TEST(Agreement, NamesTheFirstLineThatDiffers) {
  EXPECT_EQ(first_difference("a=1\nb=2\nc=3\n", "a=1\nb=4\nc=5\n"), "b=2 where the others have b=4");
}

TEST(Agreement, NamesALineThatOneSideLacks) {
  EXPECT_EQ(first_difference("a=1\nb=2\nc=3\n", "a=1\nc=3\n"), "b=2 where the others have no b");
  EXPECT_EQ(first_difference("a=1\nc=3\n", "a=1\nb=2\nc=3\n"), "no b where the others have b=2");
}

TEST(Agreement, ValuesMayHoldEqualSigns) {
  EXPECT_EQ(first_difference("flags=-O2 -std=c++20\n", "flags=-O2 -std=c++17\n"),
            "flags=-O2 -std=c++20 where the others have flags=-O2 -std=c++17");
}

TEST(Agreement, AnotherOrderIsNamedToo) {
  EXPECT_EQ(first_difference("b=2\na=1\n", "a=1\nb=2\n"),
            "the same entries as the others, in another order or number");
}

TEST(Agreement, SentenceNamesRankHostDifferenceAndRemedy) {
  EXPECT_EQ(told_of("options", {"seed=0\n", "seed=3\n"}),
            "rank 1 on n1 has seed=3 where the others have seed=0; start every rank with the same options");
  EXPECT_EQ(told_of("Program", {"hash=2\n", "hash=1\n"}),
            "rank 1 on n1 has another Program, hash=1 where the others have hash=2; use hosts with the same "
            "CPU, or set DNNL_MAX_CPU_ISA alike on all");
}

}  // namespace
}  // namespace plumb
