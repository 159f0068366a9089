#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <regex>

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
  ScalingCase& add(int nodes, int per_node, const StepOfRanks& step, std::size_t runs = 3) {
    return add(std::vector<RunRecord>(runs, run_of(nodes, per_node, step)));
  }
  std::vector<ScalingLoss> losses() const { return scaling_losses(cases_); }
  std::string only_text() const {
    const std::vector<ScalingLoss> all = losses();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? "" : scaling_text(all.front());
  }

  std::vector<ScalingCase> cases_;
  std::deque<RunRecord> records_;
};

double sum_of(const LossParts& parts) {
  return parts.communication + parts.slow_ranks.value_or(0) + parts.data + parts.computing;
}

TEST_F(ScalingTest, PartsAddUpToThePointsLost) {
  add(1, 8, {.communication = 2});
  add(2, 8, {.communication = 30, .slow_rank = 10, .which = 13});
  const std::vector<ScalingLoss> all = losses();
  ASSERT_EQ(all.size(), 1U);
  ASSERT_TRUE(all[0].parts);
  EXPECT_NEAR(all[0].lost(), 1 - 102.0 / 140, 1e-12);
  EXPECT_NEAR(sum_of(*all[0].parts), all[0].lost(), 1e-15);
  EXPECT_NEAR(all[0].parts->communication, 28.0 / 140, 1e-12);
  EXPECT_NEAR(*all[0].parts->slow_ranks, 10.0 / 140, 1e-12);
  EXPECT_NEAR(all[0].parts->computing, 0, 1e-12);
  EXPECT_EQ(scaling_text(all[0]),
            "8 to 16 devices lose 27 points of efficiency (100.0 % to 72.9 %): 20 in communication between "
            "nodes, 7 waiting for rank 13 on node2");
}

// The points of a sentence as they are printed, in tenths.
struct PrintedPoints {
  long lost = 0, parts = 0;
};
PrintedPoints printed_points(const std::string& text) {
  const auto tenths = [](const std::string& number) { return std::lround(10 * std::stod(number)); };
  PrintedPoints points;
  const std::size_t colon = text.find("): "), back = std::min(text.find("; won back: "), text.size());
  points.lost = tenths(text.substr(text.find("lose ") + 5));
  static const std::regex kPart("([0-9.]+) (in|waiting)");
  for (std::sregex_iterator part(text.begin(), text.end(), kPart), end; part != end; ++part)
    if (static_cast<std::size_t>(part->position()) > colon)
      points.parts += (static_cast<std::size_t>(part->position()) > back ? -1 : 1) * tenths((*part)[1]);
  return points;
}

TEST_F(ScalingTest, PrintedPartsAddUpToThePrintedLoss) {
  SimulatedNoise noise("parts of a step");
  for (int draw = 0; draw < 200; ++draw) {
    cases_.clear();
    add(1, 8, {.computing = 100 + noise.normal(), .communication = 5 * noise.uniform()});
    add(2, 8,
        {.computing = 103 + noise.normal(),
         .communication = 5 + 40 * noise.uniform(),
         .slow_rank = 20 * noise.uniform(),
         .data = 5 * noise.uniform(),
         .which = 11});
    const ScalingLoss loss = losses().at(0);
    EXPECT_NEAR(sum_of(*loss.parts), loss.lost(), 1e-14);
    const std::string text = scaling_text(loss);
    const PrintedPoints points = printed_points(text);
    EXPECT_GT(points.lost, 0) << text;
    EXPECT_EQ(points.parts, points.lost) << text;
  }
}

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

TEST_F(ScalingTest, FiguresThatCannotBeAreLeftOut) {
  add(1, 1, {}).runs[0].images_per_second = 0;
  add(1, 2, {.communication = 25}).runs[2].images_per_second = NAN;
  EXPECT_TRUE(only_text().starts_with("1 to 2 devices lose 20 points")) << only_text();
  for (ScalingRun& run : cases_[1].runs) run.images_per_second = 0;
  EXPECT_TRUE(losses().empty());
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
