#include <gtest/gtest.h>

#include "base/text.h"
#include "results/compare/scaling_loss.h"
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

Sample sample_of(const std::vector<RunRecord>& runs) {
  Sample sample{configuration_of(runs.front()), {}};
  for (const RunRecord& run : runs)
    sample.runs.push_back({.images_per_second = run.images_per_second.mean, .record = run});
  return sample;
}

TEST(Scaling, ALossBelowTheSpreadOfTheRunsIsWithinNoise) {
  SimulatedNoise noise("runs that vary by 2 %");
  const auto noisy = [&](int nodes, const StepOfRanks& step) {
    std::vector<RunRecord> runs;
    for (const double speed : noise.figures(7, 1, 0.02)) runs.push_back(run_of(nodes, 8, step, speed));
    return sample_of(runs);
  };
  int equal_within = 0, lost_above = 0;
  constexpr int kDraws = 40;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Sample one = noisy(1, {}), two = noisy(2, {}), slow = noisy(2, {.communication = 15});
    equal_within += scaling_losses({&one, &two}).at(0).noise == ScalingLoss::Noise::within;
    lost_above += scaling_losses({&one, &slow}).at(0).noise == ScalingLoss::Noise::above;
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
