#include "bench/links/link_probe.h"

#include <gtest/gtest.h>

#include <set>

namespace plumb {
namespace {

TEST(PairRounds, HaveEveryPairOnceAndNoPlaceTwiceInARound) {
  for (std::size_t places = 0; places <= 9; ++places) {
    std::set<std::pair<std::size_t, std::size_t>> all;
    for (const auto& round : pair_rounds(places)) {
      std::set<std::size_t> busy;
      for (const auto& [first, second] : round) {
        EXPECT_LT(first, second);
        EXPECT_LT(second, places);
        EXPECT_TRUE(busy.insert(first).second && busy.insert(second).second);
        EXPECT_TRUE(all.insert({first, second}).second);
      }
    }
    EXPECT_EQ(all.size(), places * (places - 1) / 2) << places;
  }
}

}  // namespace
}  // namespace plumb
