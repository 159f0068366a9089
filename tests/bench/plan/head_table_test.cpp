#include "bench/plan/head_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "bench/plan/step_plan.h"
#include "models/margin_head.h"
#include "tests/bench/parsed_options.h"

namespace plumb {
namespace {

constexpr std::int64_t kEmbedding = 512;

BenchOptions options_for(const std::string& target, std::int64_t classes, const std::string& head = "mp",
                         std::int64_t batch = 8) {
  return resolve(parsed_options({"--embedding", std::to_string(kEmbedding), "--backbone", "y1", "--classes",
                                 std::to_string(classes), "--head", head, "--bs", std::to_string(batch)},
                                "bench_arcface"),
                 *find_target(target), 1);
}

std::map<std::string, HeadPlan> heads_of(std::int64_t classes, int ranks) {
  std::map<std::string, HeadPlan> heads;
  for (HeadPlan& plan : plan_heads(options_for("v100-16gb", classes), *find_target("v100-16gb"), ranks))
    heads[plan.head] = std::move(plan);
  return heads;
}

std::int64_t largest_on(const HeadPlan& plan, const std::string& target) {
  return plan.largest_classes.at(target).value();
}

TEST(HeadTable, BytesOfARankFallWithTheRanksThatShareTheClasses) {
  for (const std::int64_t classes : {85'742, 1'000'000, 100'000'000}) {
    std::map<std::string, HeadPlan> fewer = heads_of(classes, 1);
    for (const int ranks : {8, 1024}) {
      SCOPED_TRACE(std::to_string(classes) + " classes on " + std::to_string(ranks) + " ranks");
      const std::map<std::string, HeadPlan> heads = heads_of(classes, ranks);
      for (const char* head : {"mp", "pfc"}) {
        EXPECT_LT(heads.at(head).planned_bytes, fewer.at(head).planned_bytes) << head;
        EXPECT_LT(heads.at(head).rows, fewer.at(head).rows) << head;
      }
      EXPECT_NEAR(heads.at("dp").planned_bytes / fewer.at("dp").planned_bytes, 1, 0.01);
      EXPECT_EQ(heads.at("dp").rows, classes);
      EXPECT_EQ(heads.at("mp").rows, class_shard(classes, 0, ranks).count);
      fewer = heads;
    }
  }
}

// Weights, momentum and (except for pfc) gradients of 4 bytes.
TEST(HeadTable, BytesPerClassAreThoseOfItsCentre) {
  constexpr int kRanks = 8;
  constexpr double kMore = 80'000'000;  // classes
  const auto few = heads_of(20'000'000, kRanks), many = heads_of(100'000'000, kRanks);
  const auto per_class = [&](const char* head) {
    return (many.at(head).planned_bytes - few.at(head).planned_bytes) / kMore;
  };
  EXPECT_GE(per_class("dp"), 3 * 4.0 * kEmbedding);
  EXPECT_GE(per_class("mp"), 3 * 4.0 * kEmbedding / kRanks);
  EXPECT_LE(per_class("mp"), 1.1 * 3 * 4.0 * kEmbedding / kRanks);
  EXPECT_GE(per_class("pfc"), 2 * 4.0 * kEmbedding / kRanks);
  EXPECT_LE(per_class("pfc"), 1.4 * 2 * 4.0 * kEmbedding / kRanks);
}

TEST(HeadTable, SharedClassesCostNoTraffic) {
  const auto alone = heads_of(85'742, 1), few = heads_of(85'742, 8), many = heads_of(1'000'000, 8);
  for (const char* head : {"dp", "mp", "pfc"}) EXPECT_EQ(alone.at(head).traffic_bytes, 0) << head;
  EXPECT_EQ(few.at("mp").traffic_bytes, many.at("mp").traffic_bytes);
  EXPECT_EQ(few.at("pfc").traffic_bytes, many.at("pfc").traffic_bytes);
  // An allreduce sends each gradient 2 * 7 / 8 times; buckets may be padded.
  const double gradients = (1'000'000 - 85'742) * 4.0 * kEmbedding * 2 * 7 / 8;
  EXPECT_NEAR(many.at("dp").traffic_bytes - few.at("dp").traffic_bytes, gradients, 1e-3 * gradients);
  EXPECT_LT(few.at("mp").traffic_bytes, few.at("dp").traffic_bytes);
}

bool fits(const std::string& target, const std::string& head, std::int64_t classes, int ranks) {
  const DeviceLimits limits = *find_target(target);
  const StepPlan plan = make_step_plan(options_for(target, classes, head), limits, 0, ranks);
  return plan.needed_bytes <= limits.memory_bytes;
}

TEST(HeadTable, LargestClassCountIsTheLastThatFits) {
  for (const int ranks : {1, 3, 32})
    for (const auto& [head, plan] : heads_of(85'742, ranks))
      for (const auto& [target, classes] : plan.largest_classes) {
        if (target == "h200" && ranks > 1) continue;  // 2^31 - 1 for some, see below
        EXPECT_TRUE(fits(target, head, *classes, ranks)) << head << ' ' << target << ' ' << *classes;
        EXPECT_FALSE(fits(target, head, *classes + 1, ranks)) << head << ' ' << target << ' ' << *classes;
      }
}

TEST(HeadTable, LargestClassCountGrowsWithMemoryRanksAndSharing) {
  std::map<std::string, HeadPlan> fewer;
  for (const int ranks : {1, 8, 1024}) {
    const std::map<std::string, HeadPlan> heads = heads_of(85'742, ranks);
    for (const auto& [head, plan] : heads) {
      EXPECT_LT(largest_on(plan, "v100-16gb"), largest_on(plan, "v100-32gb")) << head << " on " << ranks;
      EXPECT_LE(largest_on(plan, "v100-32gb"), largest_on(plan, "h200")) << head << " on " << ranks;
      if (!fewer.empty() && head != "dp") {
        EXPECT_GT(largest_on(plan, "v100-16gb"), largest_on(fewer.at(head), "v100-16gb")) << head;
      }
    }
    EXPECT_GT(largest_on(heads.at("pfc"), "v100-16gb"), largest_on(heads.at("mp"), "v100-16gb"));
    if (ranks > 1) {
      EXPECT_GT(largest_on(heads.at("mp"), "v100-16gb"), largest_on(heads.at("dp"), "v100-16gb"));
    }
    fewer = heads;
  }
  EXPECT_EQ(largest_on(fewer.at("mp"), "h200"), (std::int64_t{1} << 31) - 1) << "what --classes takes";
}

}  // namespace
}  // namespace plumb
