#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <regex>

#include "base/text.h"
#include "results/compare/compare.h"
#include "results/compare/curve_samples.h"
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

TEST_F(ScalingTest, EfficiencyIsThatOfTheFewestDevicesAndTheLargestLossComesFirst) {
  add(1, 4, {.communication = 40});
  add(1, 1, {});
  add(1, 2, {.communication = 5});
  const std::vector<ScalingLoss> all = losses();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(scaling_text(all[0]),
            "2 to 4 devices lose 24 points of efficiency (95.2 % to 71.4 %): 24 in communication");
  EXPECT_EQ(scaling_text(all[1]),
            "1 to 2 devices lose 4.8 points of efficiency (100.0 % to 95.2 %): 4.8 in communication");
  EXPECT_NEAR(all[0].lost() + all[1].lost(), 1 - 100.0 / 140, 1e-12);
  EXPECT_EQ(scaling_verdict(all), std::vector{scaling_text(all[0])}) << "4.8 points are no verdict";
}

TEST_F(ScalingTest, CommunicationIsBetweenNodesWhereTheSmallerCaseHasOne) {
  const auto text = [&](int nodes, int per_node, int more_nodes, int more_per_node) {
    cases_.clear();
    add(nodes, per_node, {});
    add(more_nodes, more_per_node, {.communication = 50});
    return only_text();
  };
  EXPECT_NE(text(1, 8, 2, 8).find("33 in communication between nodes"), std::string::npos);
  EXPECT_NE(text(1, 1, 2, 1).find("33 in communication between nodes"), std::string::npos);
  for (const std::string& other : {text(1, 4, 1, 8), text(2, 8, 4, 8), text(1, 1, 2, 8)})
    EXPECT_TRUE(other.ends_with(": 33 in communication")) << other;
}

TEST_F(ScalingTest, WonBackTimeIsNamedAndCounted) {
  add(1, 8, {.computing = 100});
  add(2, 8, {.computing = 90, .communication = 60});
  EXPECT_EQ(only_text(),
            "8 to 16 devices lose 33 points of efficiency (100.0 % to 66.7 %): 40 in communication between "
            "nodes; won back: 7 in computing");
}

TEST_F(ScalingTest, DataAndComputingArePartsToo) {
  add(1, 1, {});
  add(1, 8, {.computing = 112, .data = 38});
  EXPECT_EQ(only_text(),
            "1 to 8 devices lose 33 points of efficiency (100.0 % to 66.7 %): 25 waiting for data, 8 in "
            "computing");
}

TEST_F(ScalingTest, WaitingForARankThatWaitsForDataCountsOnce) {
  add(1, 1, {});
  RunRecord starved = run_of(1, 8, {.slow_rank = 50, .which = 0});
  starved.data_wait_seconds = 0.05;
  add({starved, starved});
  EXPECT_EQ(
      only_text(),
      "1 to 8 devices lose 33 points of efficiency (100.0 % to 66.7 %): 33 waiting for rank 0 on node1");
}

TEST_F(ScalingTest, AnotherSlowRankInEachRunIsNotNamed) {
  add(1, 8, {});
  add({run_of(2, 8, {.slow_rank = 20, .which = 3}), run_of(2, 8, {.slow_rank = 20, .which = 9})});
  EXPECT_TRUE(only_text().ends_with(": 17 waiting for slow ranks")) << only_text();
}

TEST_F(ScalingTest, ASlowHostIsNamedWithItsRanks) {
  add(1, 4, {});
  RunRecord run = run_of(2, 4, {.slow_rank = 20, .which = 5});
  for (std::size_t rank = 4; rank < 8; ++rank) run.ranks[rank].exposed_communication_seconds = 0;
  add({run, run});
  EXPECT_TRUE(only_text().ends_with(": 17 waiting for ranks 4 to 7 on node2")) << only_text();
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

TEST_F(ScalingTest, OneRunDoesNotKnowItsNoise) {
  add(1, 8, {}, 1);
  add(2, 8, {.communication = 25}, 3);
  EXPECT_EQ(
      only_text(),
      "8 to 16 devices lose 20 points of efficiency (100.0 % to 80.0 %; noise unknown from one run): 20 "
      "in communication between nodes");
}

TEST_F(ScalingTest, RecordsWithoutRanksKeepCommunicationAndWaitingTogether) {
  add(1, 8, {});
  RunRecord old = run_of(2, 8, {.communication = 15, .slow_rank = 10, .which = 13});
  old.ranks.clear();
  add({old, old});
  EXPECT_FALSE(losses().at(0).parts->slow_ranks.has_value());
  EXPECT_TRUE(to_json(losses().at(0)).at("parts").at("slow_ranks").is_null());
  EXPECT_TRUE(only_text().ends_with(": 20 in communication between nodes and waiting for other ranks"))
      << only_text();
}

TEST_F(ScalingTest, LogsTellTheEfficiencyOnly) {
  add(1, 8, {});
  for (ScalingRun& run : add(2, 8, {.communication = 25}).runs) run.record = nullptr;
  EXPECT_EQ(only_text(), "8 to 16 devices lose 20 points of efficiency (100.0 % to 80.0 %)");
  EXPECT_TRUE(to_json(losses().at(0)).at("parts").is_null());
}

TEST_F(ScalingTest, GainsAndNothingAtAllAreSaidSo) {
  add(1, 1, {.computing = 110});
  add(1, 2, {.computing = 100});
  EXPECT_EQ(only_text(), "1 to 2 devices gain 10 points of efficiency (100.0 % to 110.0 %)");
  cases_.clear();
  add(1, 1, {}, 1);
  add(1, 2, {.communication = 0.01}, 1);
  EXPECT_EQ(only_text(),
            "1 to 2 devices keep their efficiency (100.0 % to 100.0 %; noise unknown from one run)");
}

TEST_F(ScalingTest, CasesOfEqualDeviceCountsAreNamed) {
  add(1, 1, {});
  add(1, 4, {.communication = 10});
  add(2, 2, {.communication = 30});
  add(2, 4, {.communication = 60});
  std::vector<std::string> subjects;
  for (const ScalingLoss& loss : losses()) {
    const std::string text = scaling_text(loss);
    subjects.push_back(text.substr(0, text.find(" lose")));
  }
  std::ranges::sort(subjects);
  EXPECT_EQ(subjects, (std::vector<std::string>{"1n1g to 1n4g", "1n1g to 2n2g", "1n4g to 2n4g"}));
}

TEST_F(ScalingTest, FiguresThatCannotBeAreLeftOut) {
  add(1, 1, {}).runs[0].images_per_second = 0;
  add(1, 2, {.communication = 25}).runs[2].images_per_second = NAN;
  EXPECT_TRUE(only_text().starts_with("1 to 2 devices lose 20 points")) << only_text();
  for (ScalingRun& run : cases_[1].runs) run.images_per_second = 0;
  EXPECT_TRUE(losses().empty());
}

TEST_F(ScalingTest, OneNumberOfDevicesHasNoVerdict) {
  add(1, 8, {});
  EXPECT_TRUE(losses().empty());
  EXPECT_TRUE(scaling_verdict(losses()).empty());
}

Sample sample_of(const RunRecord& record) {
  Sample sample{configuration_of(record), {}};
  for (int run = 0; run < 2; ++run) {
    Measurement measured;
    measured.origin = fmt::format("runs/{}_{}", sample.configuration.case_name(), run);
    measured.images_per_second = record.images_per_second.mean;
    measured.record = record;
    sample.runs.push_back(measured);
  }
  return sample;
}

SampleSet set_with_two_ways_to_communicate() {
  SampleSet set{"runs", {}};
  RunRecord by_mpi = run_of(2, 8, {.communication = 100, .slow_rank = 50, .which = 13});
  by_mpi.config["overlap"] = false;
  set.loaded.samples = {sample_of(run_of(1, 1, {})), sample_of(run_of(2, 8, {.communication = 25})),
                        sample_of(by_mpi)};
  return set;
}

TEST(WaitParts, AreTheTransferAndTheWaitForTheSlowestRank) {
  const WaitParts parts = wait_parts({0.13, 0.03, 0.12, 0.14});
  EXPECT_DOUBLE_EQ(parts.transfer, 0.03);
  EXPECT_DOUBLE_EQ(parts.slowest_rank, 0.13 - 0.03);
  EXPECT_EQ(wait_parts({0.05, 0.05}).slowest_rank, 0);
  EXPECT_DOUBLE_EQ(wait_parts({0, 0.69}).slowest_rank, 0.69);
}

TEST(ScalingOfSamples, CurvesThatDifferInCommunicationShareTheOneDevice) {
  const std::vector<CurveScaling> scaling = scaling_of(set_with_two_ways_to_communicate().loaded.samples);
  ASSERT_EQ(scaling.size(), 2U);
  for (const CurveScaling& curve : scaling) {
    ASSERT_EQ(curve.losses.size(), 1U);
    EXPECT_EQ(curve.losses[0].smaller.devices(), 1);
    EXPECT_EQ(curve.configuration.devices(), 0);
  }
}

TEST(ScalingOfSamples, EverySettingOfCommunicationLeavesTheOneDeviceShared) {
  const nlohmann::ordered_json settings{{"overlap", false}, {"bucket_mb", 4.0}, {"reduce_dtype", "fp32"}};
  for (const auto& [key, value] : settings.items()) {
    RunRecord other = run_of(2, 8, {.communication = 100});
    other.config[key] = value;
    EXPECT_EQ(scaling_of({sample_of(run_of(1, 1, {})), sample_of(other)}).size(), 1U) << key;
  }
}

TEST(ScalingOfSamples, RanksThatShareAGpuAreOnNoCurve) {
  std::vector<Sample> samples{sample_of(run_of(1, 1, {}))};
  for (const int ranks : {2, 4}) {
    RunRecord shared = run_of(1, ranks, {.communication = 100});
    shared.config["share_gpu"] = true;
    samples.push_back(sample_of(shared));
  }
  EXPECT_TRUE(scaling_of(samples).empty());
}

TEST(ScalingOfSamples, CompareBeginsWithTheVerdictOfEachSet) {
  const std::vector<SampleSet> sets{set_with_two_ways_to_communicate()};
  const CompareReport report{.sets = sets, .comparison = {}, .published = {}, .criteria = {}};
  const std::string text = compare_text(report);
  EXPECT_TRUE(text.starts_with("A: runs\n\nscaling\n  A, resnet50 fp32, batch 8 per device")) << text;
  EXPECT_NE(text.find("lose 20"), std::string::npos) << text;
  EXPECT_LT(text.find("lose 60"), text.find("images/s")) << text;
  const nlohmann::ordered_json json = compare_json(report);
  ASSERT_EQ(json.at("scaling").size(), 2U);
  const auto& loss = json.at("scaling").at(1).at("losses").at(0);
  EXPECT_EQ(loss.at("from"), "1n1g");
  EXPECT_EQ(loss.at("to"), "2n8g");
  EXPECT_EQ(loss.at("slow_ranks"), "rank 13 on node2");
  double sum = 0;
  for (const auto& [part, share] : loss.at("parts").items()) sum += share.get<double>();
  EXPECT_NEAR(sum, loss.at("lost").get<double>(), 1e-12);
}

TEST(ScalingOfSamples, CompareSaysNothingOfOneNumberOfDevices) {
  SampleSet set{"runs", {}};
  set.loaded.samples = {sample_of(run_of(1, 8, {}))};
  const std::vector<SampleSet> sets{set};
  EXPECT_EQ(compare_text({.sets = sets, .comparison = {}, .published = {}, .criteria = {}}).find("scaling"),
            std::string::npos);
}

}  // namespace
}  // namespace plumb
