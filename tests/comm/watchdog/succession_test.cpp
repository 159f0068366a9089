#include "comm/watchdog/succession.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plumb {
namespace {

using RankList = std::vector<int>;

// Two ranks on each.
std::vector<std::string> hosts(int count) {
  std::vector<std::string> names;
  for (int rank = 0; rank < 2 * count; ++rank) names.push_back("n" + std::to_string(rank / 2));
  return names;
}

TEST(Succession, IsOverAtOnceForTheLowestRankThatIsLeft) {
  EXPECT_TRUE(Succession(hosts(2), 1, 0).is_over(0));
  EXPECT_TRUE(Succession({"n0", "n1"}, 1, 0).is_over(0));
}

TEST(Succession, AsksTheLowestRankThatAnswers) {
  Succession succession(hosts(4), 6, 10);
  EXPECT_EQ(succession.to_dial(10), RankList{1});
  EXPECT_EQ(succession.to_dial(10), RankList{});
  EXPECT_EQ(succession.to_dial(10.25), (RankList{2, 4}));
  succession.joined(4);
  EXPECT_FALSE(succession.to_ask(10.3)) << "rank 1 may still answer";
  succession.joined(1);
  EXPECT_EQ(succession.to_ask(10.4), 1);
}

TEST(Succession, PassesOverAHostThatIsLost) {
  Succession succession(hosts(3), 4, 0);
  succession.to_dial(0.5);
  succession.joined(2);
  EXPECT_FALSE(succession.to_ask(1.9));
  EXPECT_EQ(succession.to_ask(2.6), 2);
}

TEST(Succession, AsksTheNextRankOfAHostWhereOneIsGone) {
  Succession succession({"n0", "n0", "n0", "n1"}, 3, 0);
  EXPECT_EQ(succession.to_dial(0.2), RankList{1});
  succession.closed(1);
  EXPECT_EQ(succession.to_dial(0.2), RankList{2});
  succession.joined(2);
  EXPECT_EQ(succession.to_ask(0.2), 2);
  succession.closed(2);
  EXPECT_TRUE(succession.is_over(0.2));
}

TEST(Succession, AsksNobodyTwiceWhoDoesNotAnswer) {
  Succession succession(hosts(2), 2, 0);
  succession.to_dial(0);
  succession.joined(1);
  ASSERT_EQ(succession.to_ask(0), 1);
  succession.gives_no_answer(1);
  EXPECT_FALSE(succession.to_ask(0));
  EXPECT_TRUE(succession.is_over(0));
}

// 128 hosts, and this one's cable is out.
TEST(Succession, EndsWithinFiveSecondsOnAHostThatIsCutOff) {
  Succession succession(hosts(128), 254, 0);
  double now = 0;
  for (; !succession.is_over(now) && now < 60; now += 0.02) succession.to_dial(now);
  EXPECT_GT(now, 2);
  EXPECT_LT(now, 5.1);
}

}  // namespace
}  // namespace plumb
