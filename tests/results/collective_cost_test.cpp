// Times of collectives over links: formulas, measured corrections, slow pairs.
#include "results/simulation/collective_cost.h"

#include <gtest/gtest.h>

#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

constexpr const char* kSum = "allreduce_sum";

Links plain_links() {
  return {.comm = "mpi",
          .hosts = {{"n1", 2}, {"n2", 2}, {"n3", 2}, {"n4", 2}},
          .start_seconds = 1e-6,
          .within_host = Link{2e-6, 4e9},
          .between_hosts = Link{5e-5, 1e8}};
}

MeasuredAllreduce measured(Layout layout, std::int64_t bytes, double seconds) {
  return {layout.nodes, layout.devices_per_node, bytes, {0.9 * seconds, seconds, 1.5 * seconds}};
}

TEST(CollectiveCost, ARingTakesItsHopsAndItsBytesOverTheSlowestLink) {
  const double bytes = 1e8;
  const CollectiveCost within(plain_links(), {1, 2});
  EXPECT_NEAR(within.seconds(kSum, bytes), 1e-6 + 2 * 2e-6 + bytes / 4e9, 1e-12);
  const CollectiveCost between(plain_links(), {4, 2});
  EXPECT_NEAR(between.seconds(kSum, bytes), 1e-6 + 8 * 2e-6 + 6 * 5e-5 + bytes / 1e8 * 2 * 7 / 8, 1e-12);
  EXPECT_NEAR(between.seconds("allgather", bytes), 1e-6 + 4 * 2e-6 + 3 * 5e-5 + bytes / 1e8 * 7 / 8, 1e-12);
  EXPECT_EQ(CollectiveCost(plain_links(), {1, 1}).seconds(kSum, bytes), 0);
  EXPECT_NEAR(between.least_seconds(kSum, bytes), bytes / 1e8 * 2 * 7 / 8, 1e-12);
}

TEST(CollectiveCost, NcclsLatenciesAreThoseOfItsTuning) {
  const Links links{.comm = "nccl",
                    .start_seconds = 8.4e-6,
                    .within_host = Link{3.4e-6, 130e9},
                    .between_hosts = Link{9.6e-6, 12e9}};
  const CollectiveCost cost(links, {2, 8});
  const double ring = 8.4e-6 + (2 * 15 - 2) * 3.4e-6 + 2 * 9.6e-6;
  const double tree = 8.4e-6 + 2 * (7 * 4.0e-6 + 14e-6);
  EXPECT_LT(tree, ring);
  EXPECT_NEAR(cost.seconds(kSum, 1), tree, 1e-9);  // small ones go by the tree
  const double large = 1e9, by_ring = ring + large / 12e9 * 2 * 15 / 16;
  EXPECT_NEAR(cost.seconds(kSum, large), by_ring, 1e-9);
}

TEST(CollectiveCost, WhatWasMeasuredCorrectsEachSize) {
  Links links = plain_links();
  const Layout layout{4, 2};
  const CollectiveCost model(links, layout);
  links.allreduces = {measured(layout, 1000, 2 * model.seconds(kSum, 1000)),
                      measured(layout, 100000, 1.2 * model.seconds(kSum, 100000))};
  const CollectiveCost cost(links, layout);
  EXPECT_NEAR(cost.seconds(kSum, 1000) / model.seconds(kSum, 1000), 2, 1e-9);
  EXPECT_NEAR(cost.seconds(kSum, 10000) / model.seconds(kSum, 10000), 1.6, 1e-9);
  EXPECT_NEAR(cost.seconds(kSum, 1e8) / model.seconds(kSum, 1e8), 1.2, 1e-9);
  EXPECT_NEAR(cost.spread(1000).fastest, 0.9, 1e-9);
  EXPECT_NEAR(cost.spread(1000).slowest, 1.5, 1e-9);
  const Layout larger{8, 2};  // as the largest that was measured
  EXPECT_NEAR(CollectiveCost(links, larger).seconds(kSum, 1000) /
                  CollectiveCost(plain_links(), larger).seconds(kSum, 1000),
              2, 1e-9);
}

TEST(CollectiveCost, LinksAreFittedWhereOnlyAllreducesWereMeasured) {
  const Layout layout{4, 1};
  const CollectiveCost truth(plain_links(), layout);
  Links links{.comm = "mpi", .hosts = plain_links().hosts};
  for (std::int64_t bytes = 1024; bytes <= 1 << 26; bytes *= 8)
    links.allreduces.push_back(measured(layout, bytes, truth.seconds(kSum, static_cast<double>(bytes))));
  const Layout twice{8, 1};
  EXPECT_NEAR(CollectiveCost(links, twice).seconds(kSum, 1e7) /
                  CollectiveCost(plain_links(), twice).seconds(kSum, 1e7),
              1, 1e-3);
  const std::optional<Link> link = fitted_link(links.allreduces, layout);
  ASSERT_TRUE(link);
  EXPECT_NEAR(link->bytes_per_second, 1e8, 1e3);
  EXPECT_FALSE(fitted_link(links.allreduces, {2, 1}));
}

TEST(CollectiveCost, TheSlowestPairLimitsTheRingAndIsNamed) {
  Links links = plain_links();
  links.between_hosts.reset();
  for (const auto& [first, second] :
       {std::pair("n1", "n2"), {"n2", "n3"}, {"n3", "n4"}, {"n4", "n1"}, {"n3", "n1"}})
    links.pairs.push_back({first, second, {5e-5, std::string(first) == "n3" ? 1e7 : 1e8}});
  const CollectiveCost all(links, {4, 1});
  EXPECT_EQ(all.slowest_pair(), "n3 and n4");
  EXPECT_EQ(all.bytes_per_second(), 1e7);
  EXPECT_EQ(CollectiveCost(links, {2, 1}).bytes_per_second(), 1e8);  // n1 and n2 only
  EXPECT_EQ(CollectiveCost(links, {16, 1}).bytes_per_second(), 1e7);
}

TEST(CollectiveCost, AMissingLinkIsNamed) {
  Links links = plain_links();
  links.between_hosts.reset();
  EXPECT_EQ(missing_link(links, {2, 1}), "link between hosts");
  EXPECT_EQ(missing_link(links, {1, 2}), "");
  links.within_host.reset();
  EXPECT_EQ(missing_link(links, {1, 2}), "link within a host");
  EXPECT_EQ(missing_link(links, {1, 1}), "");
  expect_error(ExitCode::bad_data, {"link within a host", "1n2g"}, [&] { CollectiveCost(links, {1, 2}); });
}

}  // namespace
}  // namespace plumb
