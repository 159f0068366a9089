#include "bench/links/link_probe.h"

#include <gtest/gtest.h>

#include <set>

namespace plumb {
namespace {

TEST(PairRounds, HaveEveryPairOnceAndNoPlaceTwiceInARound) {
  for (int count = 0; count <= 9; ++count) {
    std::vector<int> places;
    for (int i = 0; i < count; ++i) places.push_back(10 * i);
    std::set<std::pair<int, int>> all;
    for (const std::vector<RankPair>& round : pair_rounds(places)) {
      std::set<int> busy;
      for (const RankPair& pair : round) {
        EXPECT_LT(pair.first, pair.second);
        EXPECT_TRUE(busy.insert(pair.first).second && busy.insert(pair.second).second);
        EXPECT_TRUE(all.insert({pair.first, pair.second}).second);
      }
    }
    EXPECT_EQ(all.size(), static_cast<std::size_t>(count * (count - 1) / 2)) << count;
  }
}

}  // namespace
}  // namespace plumb
