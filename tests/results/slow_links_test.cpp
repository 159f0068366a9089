#include "results/anomalies/slow_links.h"

#include <gtest/gtest.h>

#include <functional>

namespace plumb {
namespace {

std::vector<MeasuredPair> all_pairs(std::size_t places,
                                    const std::function<Link(std::size_t, std::size_t)>& link) {
  std::vector<MeasuredPair> pairs;
  for (std::size_t first = 0; first < places; ++first)
    for (std::size_t second = first + 1; second < places; ++second)
      pairs.push_back({first, second, link(first, second)});
  return pairs;
}

std::vector<MeasuredPair> with_slow_place(std::size_t places, std::size_t slow) {
  return all_pairs(places, [=](std::size_t first, std::size_t second) {
    return Link{5e-5, first == slow || second == slow ? 1.2e7 : 1.17e8};
  });
}

const std::vector<std::string> kNames{"node1", "node2", "node3", "node4", "node5"};

TEST(SlowLinks, ASlowHostIsNamedOnceAndNotItsLinks) {
  for (const std::size_t places : {3u, 4u, 5u})
    for (std::size_t slow = 0; slow < places; ++slow) {
      const std::vector<SlowLink> found = find_slow(places, with_slow_place(places, slow));
      ASSERT_EQ(found.size(), 1u) << places << " " << slow;
      EXPECT_EQ(found[0].place, slow);
      EXPECT_FALSE(found[0].other);
    }
  EXPECT_EQ(slow_text(find_slow(4, with_slow_place(4, 2))[0], kNames),
            "host node3 reaches 96 Mbit/s where others reach 936 Mbit/s");
}

TEST(SlowLinks, ASlowLinkBetweenGoodHostsIsNamedWithBothEnds) {
  const auto pairs = all_pairs(4, [](std::size_t first, std::size_t second) {
    return Link{5e-5, first == 1 && second == 3 ? 4e7 : 1.17e8};
  });
  const std::vector<SlowLink> found = find_slow(4, pairs);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(slow_text(found[0], kNames),
            "the link node2 - node4 reaches 320 Mbit/s where others reach 936 Mbit/s");
}

TEST(SlowLinks, ALateHostIsFoundByItsLatency) {
  const auto pairs = all_pairs(4, [](std::size_t, std::size_t second) {
    return Link{second == 3 ? 5e-4 : 5e-5, 1.17e8};
  });
  const std::vector<SlowLink> found = find_slow(4, pairs);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, SlowLink::What::latency);
  EXPECT_EQ(slow_text(found[0], kNames),
            "host node4 takes 500 us for a small message where others take 50 us");
}

TEST(SlowLinks, SmallDifferencesAreNone) {
  const auto pairs = all_pairs(5, [](std::size_t first, std::size_t second) {
    return Link{4e-5 + 1e-5 * static_cast<double>(first), 1e8 + 1e6 * static_cast<double>(second)};
  });
  EXPECT_TRUE(find_slow(5, pairs).empty());
}

TEST(SlowLinks, TwoHostsHaveNothingToCompareWith) {
  EXPECT_TRUE(find_slow(2, with_slow_place(2, 0)).empty());
}

TEST(SlowLinks, LimitsMayBeWider) {
  const auto pairs = all_pairs(4, [](std::size_t, std::size_t second) {
    return Link{second == 3 ? 5e-4 : 5e-5, second == 3 ? 7e7 : 1.17e8};
  });
  EXPECT_EQ(find_slow(4, pairs).size(), 2U);
  const SlowLimits wide{.bandwidth_share = 0.5, .latency_factor = 5, .latency_seconds = 1e-3};
  EXPECT_TRUE(find_slow(4, pairs, wide).empty());
}

TEST(SlowWarning, NamesHostsWithBothFigures) {
  const std::vector<SlowLink> slow = find_slow(4, with_slow_place(4, 2));
  EXPECT_EQ(slow_warning(slow, kNames),
            "host node3 reaches 96 Mbit/s where others reach 936 Mbit/s: every step waits for it; check its "
            "cable, port and network card, or leave the host out");
  EXPECT_EQ(slow_warning({}, kNames), "");
}

TEST(SlowWarning, NamesAtMostThree) {
  std::vector<SlowLink> slow;
  for (std::size_t place = 0; place < 5; ++place)
    slow.push_back({.place = place, .value = 1e6, .usual = 1e8});
  slow[1].other = 4;
  const std::string text = slow_warning(slow, kNames);
  EXPECT_NE(text.find("; the link node2 - node5 reaches 8 Mbit/s where"), std::string::npos) << text;
  EXPECT_NE(text.find("host node3 reaches"), std::string::npos) << text;
  EXPECT_NE(text.find("; and 2 more: every step"), std::string::npos) << text;
}

TEST(BitsText, IsInGigabitsFrom10000MegabitsOn) {
  EXPECT_EQ(bits_text(1.2e9), "9600 Mbit/s");
  EXPECT_EQ(bits_text(1.25e10), "100 Gbit/s");
}

}  // namespace
}  // namespace plumb
