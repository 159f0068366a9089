#include <gtest/gtest.h>

#include <map>

#include "bench/plan/step_plan.h"
#include "comm/gradient_reduction.h"
#include "tests/bench/parsed_options.h"

namespace plumb {
namespace {

constexpr std::int64_t kEmbedding = 512;

BenchOptions options_for(const std::string& target, std::int64_t classes, const std::string& head) {
  return resolve(parsed_options({"--embedding", std::to_string(kEmbedding), "--backbone", "y1", "--classes",
                                 std::to_string(classes), "--head", head, "--bs", "8"},
                                "bench_arcface"),
                 *find_target(target), 1);
}

struct HeadPlan {
  double planned_bytes = 0, traffic_bytes = 0;  // of rank 0; per step
};

std::map<std::string, HeadPlan> heads_of(std::int64_t classes, int ranks) {
  const DeviceLimits limits = *find_target("v100-16gb");
  std::map<std::string, HeadPlan> heads;
  for (const char* head : {"dp", "mp", "pfc"}) {
    const StepPlan plan = make_step_plan(options_for(limits.name, classes, head), limits, 0, ranks);
    heads[head] = {static_cast<double>(plan.memory.arena_bytes), sent_bytes_per_rank(plan.program, ranks)};
  }
  return heads;
}

TEST(HeadPlans, BytesOfARankFallWithTheRanksThatShareTheClasses) {
  for (const std::int64_t classes : {85'742, 1'000'000, 100'000'000}) {
    std::map<std::string, HeadPlan> fewer = heads_of(classes, 1);
    for (const int ranks : {8, 1024}) {
      SCOPED_TRACE(std::to_string(classes) + " classes on " + std::to_string(ranks) + " ranks");
      const std::map<std::string, HeadPlan> heads = heads_of(classes, ranks);
      for (const char* head : {"mp", "pfc"})
        EXPECT_LT(heads.at(head).planned_bytes, fewer.at(head).planned_bytes) << head;
      EXPECT_NEAR(heads.at("dp").planned_bytes / fewer.at("dp").planned_bytes, 1, 0.01);
      fewer = heads;
    }
  }
}

// Weights, momentum and (except for pfc) gradients of 4 bytes.
TEST(HeadPlans, BytesPerClassAreThoseOfItsCentre) {
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

TEST(HeadPlans, SharedClassesCostNoTraffic) {
  const auto alone = heads_of(85'742, 1), few = heads_of(85'742, 8), many = heads_of(1'000'000, 8);
  for (const char* head : {"dp", "mp", "pfc"}) EXPECT_EQ(alone.at(head).traffic_bytes, 0) << head;
  EXPECT_EQ(few.at("mp").traffic_bytes, many.at("mp").traffic_bytes);
  EXPECT_EQ(few.at("pfc").traffic_bytes, many.at("pfc").traffic_bytes);
  // An allreduce sends each gradient 2 * 7 / 8 times; buckets may be padded.
  const double gradients = (1'000'000 - 85'742) * 4.0 * kEmbedding * 2 * 7 / 8;
  EXPECT_NEAR(many.at("dp").traffic_bytes - few.at("dp").traffic_bytes, gradients, 1e-3 * gradients);
  EXPECT_LT(few.at("mp").traffic_bytes, few.at("dp").traffic_bytes);
}

}  // namespace
}  // namespace plumb
