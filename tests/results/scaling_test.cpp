#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "base/text.h"
#include "results/scaling/scaling_loss.h"
#include "results/scaling/slow_ranks.h"
#include "tests/results/run_folder.h"
#include "tests/results/simulated_runs.h"

namespace plumb {
namespace {

// Milliseconds of a step; the rank that the others wait for computes that much longer.
struct StepOfRanks {
  double computing = 100, communication = 0, slow_rank = 0, data = 0;
  std::size_t which = 0;  // the slow rank

  double milliseconds() const { return computing + communication + slow_rank + data; }
};

RunRecord run_of(int nodes, int per_node, const StepOfRanks& step, double speed = 1) {
  const int devices = nodes * per_node;
  RunRecord record = example_run(8 * devices / step.milliseconds() * 1000 * speed);
  record.world_size = devices;
  record.nodes = nodes;
  record.devices_per_node = per_node;
  record.rank_window_seconds.assign(static_cast<std::size_t>(devices), 1.0);
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(devices); ++rank)
    record.ranks.push_back({fmt::format("node{}", rank / static_cast<std::size_t>(per_node) + 1),
                            (step.communication + (rank == step.which ? 0 : step.slow_rank)) / 1000});
  record.exposed_communication_seconds = record.ranks[0].exposed_communication_seconds;
  record.data_wait_seconds = step.data / 1000;
  return record;
}

class ScalingTest : public testing::Test {
 protected:
  ScalingCase& add(const std::vector<RunRecord>& runs) {
    cases_.push_back({configuration_of(runs.front()), {}});
    for (const RunRecord& run : runs) {
      records_.push_back(run);
      cases_.back().runs.push_back({run.images_per_second.mean, &records_.back()});
    }
    return cases_.back();
  }
  std::vector<ScalingLoss> losses() const { return scaling_losses(cases_); }

  std::vector<ScalingCase> cases_;
  std::deque<RunRecord> records_;
};

TEST_F(ScalingTest, ALossBelowTheSpreadOfTheRunsIsWithinNoise) {
  SimulatedNoise noise("runs that vary by 2 %");
  const auto add_noisy = [&](int nodes, const StepOfRanks& step) {
    std::vector<RunRecord> runs;
    for (const double speed : noise.figures(7, 1, 0.02)) runs.push_back(run_of(nodes, 8, step, speed));
    add(runs);
  };
  int equal_within = 0, lost_above = 0;
  constexpr int kDraws = 40;
  for (int draw = 0; draw < kDraws; ++draw) {
    cases_.clear();
    add_noisy(1, {});
    add_noisy(2, {});
    const ScalingLoss equal = losses().at(0);
    if (equal.noise == ScalingLoss::Noise::within) {
      ++equal_within;
      EXPECT_TRUE(scaling_text(equal).ends_with(" %, within noise")) << scaling_text(equal);
    }
    cases_.pop_back();
    add_noisy(2, {.communication = 15});
    lost_above += losses().at(0).noise == ScalingLoss::Noise::above;
  }
  EXPECT_GE(equal_within, kDraws * 9 / 10);
  EXPECT_EQ(lost_above, kDraws);
}

TEST(WaitParts, AreTheTransferAndTheWaitForTheSlowestRank) {
  const WaitParts parts = wait_parts({0.13, 0.03, 0.12, 0.14});
  EXPECT_DOUBLE_EQ(parts.transfer, 0.03);
  EXPECT_DOUBLE_EQ(parts.slowest_rank, 0.13 - 0.03);
  EXPECT_EQ(wait_parts({0.05, 0.05}).slowest_rank, 0);
  EXPECT_DOUBLE_EQ(wait_parts({0, 0.69}).slowest_rank, 0.69);
}

}  // namespace
}  // namespace plumb
