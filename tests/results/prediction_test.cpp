// Predictions of cases, their intervals, and the verdicts on what was measured.
#include "results/simulation/prediction.h"

#include <gtest/gtest.h>

#include "results/simulation/prediction_text.h"
#include "results/simulation/scaling_basis.h"
#include "results/simulation/scaling_verdicts.h"
#include "tests/bench/expect_error.h"
#include "tests/results/predicted_runs.h"
#include "tests/results/run_folder.h"
#include "tests/results/simulated_program.h"

namespace plumb {
namespace {

using Kind = ScalingVerdict::Kind;

TEST_F(PredictionTest, TwoNodesWithASlowLinkLoseTheExposedTime) {
  const ScalingPrediction prediction = predict();
  ASSERT_EQ(prediction.cases.size(), 3U);
  EXPECT_DOUBLE_EQ(prediction.cases[0].images_per_second, 1);
  // Two ranks: 0.8 s from 4 on, 0.2 s from 6 on, of which all is exposed; then updates.
  const PredictedCase& two = prediction.cases[1];
  EXPECT_NEAR(two.exposed_seconds, 0.2, 1e-9);
  EXPECT_NEAR(two.step_seconds, 7.2, 1e-9);
  EXPECT_NEAR(two.images_per_second, 14 / 7.2, 1e-9);
  EXPECT_NEAR(two.efficiency, 7 / 7.2, 1e-9);
  EXPECT_NEAR(prediction.cases[2].exposed_seconds, 0.3, 1e-9);  // 2 (n - 1) / n = 1.5
}

TEST_F(PredictionTest, TheIntervalHoldsThePredictionAndGrowsWithJitter) {
  basis_.fastest_seconds = 6.9;
  basis_.slowest_seconds = 7.1;
  basis_.deviation_seconds = 0.1;
  const PredictedCase four = predict().cases[2];
  EXPECT_NEAR(four.jitter_seconds, 0.1 * expected_maximum(4), 1e-9);
  EXPECT_LT(four.low_images_per_second, four.images_per_second);
  EXPECT_GT(four.high_images_per_second, four.images_per_second);
  EXPECT_GE(four.bound_images_per_second, four.high_images_per_second);
}

TEST_F(PredictionTest, ACaseOnOneHostTellsTheJitterOfLargerOnes) {
  Links links = slow_links();
  for (LinkHost& host : links.hosts) host.devices = 2;
  links.within_host = Link{0, 1e15};
  measure({1, 2}, 7.3);
  const ScalingPrediction prediction = predict_scaling(basis_, links, {}, {{1, 2}, {4, 2}});
  EXPECT_NEAR(prediction.cases[0].jitter_seconds, 0, 1e-9);
  EXPECT_NEAR(prediction.cases[1].jitter_seconds, 0.3 * expected_maximum(8) / expected_maximum(2), 1e-6);
  basis_.measured.front().images_per_second /= 2;  // too slow to be jitter
  EXPECT_EQ(predict_scaling(basis_, links, {}, {{1, 2}, {4, 2}}).cases[1].jitter_seconds, 0);
}

TEST_F(PredictionTest, WhatIfChangesTheLinkTheBucketsOrTheType) {
  const double before = predict().cases[2].images_per_second;
  EXPECT_GT(predict({.between_bytes_per_second = 1e12}).cases[2].images_per_second, before);
  EXPECT_LT(predict({.between_latency_seconds = 1}).cases[2].images_per_second, before);
  EXPECT_EQ(predict({.bucket_mb = 16}).step.collectives.size(), 2U);
  EXPECT_GT(predict({.reduce_dtype = "fp16"}).cases[2].images_per_second, before);
  measure({2, 1}, 20);
  EXPECT_TRUE(scaling_verdicts(basis_, predict({.bucket_mb = 16})).empty());
}

TEST_F(PredictionTest, TheExchangeIsThatOfTheMeasuredRuns) {
  MeasuredCase& two = measure({2, 1}, 7.25, 0.25);
  basis_.step.collectives.clear();  // as of a run on one device
  two.record.config = {{"bucket_mb", 16.0}, {"reduce_dtype", "fp16"}, {"overlap", false}};
  const StepModel step = predict().step;
  for (const StepCollective& one : step.collectives) EXPECT_EQ(one.after, 4U);  // behind backward
  EXPECT_EQ(step.sent_element_bytes, 2);
  EXPECT_EQ(predict({.reduce_dtype = "same"}).step.collectives.back().bytes, 2 << 20);
}

TEST_F(PredictionTest, CasesOverUnknownLinksAreLeftOutWithANote) {
  Links links = slow_links();
  links.between_hosts.reset();
  links.within_host = Link{0, 1e9};
  const ScalingPrediction prediction = predict_scaling(basis_, links, {}, {{1, 1}, {2, 1}});
  EXPECT_EQ(prediction.cases.size(), 1U);
  ASSERT_EQ(prediction.notes.size(), 1U);
  EXPECT_NE(prediction.notes[0].find("2n1g"), std::string::npos);
}

TEST_F(PredictionTest, ARunAsPredictedHasNoVerdict) {
  measure({1, 1}, 7);
  measure({2, 1}, 7.25, 0.25);
  EXPECT_TRUE(verdicts().empty());
  EXPECT_NE(prediction_text(basis_, predict(), {}).find("OK: the measured case is as fast as predicted"),
            std::string::npos);
}

TEST_F(PredictionTest, ARunFasterThanItsLinksIsRejected) {
  measure({2, 1}, 7.0);  // its last bucket can't be there before 6.2, then come updates
  EXPECT_EQ(only_verdict().kind, Kind::reject);
  EXPECT_NE(only_verdict().reason.find("faster than these links allow"), std::string::npos);
  basis_.measured.front().images_per_second = 14 / 7.1;  // 1.4 %: within what is allowed
  EXPECT_TRUE(verdicts().empty());
}

TEST_F(PredictionTest, ASlowRunIsExplainedByItsLargestPart) {
  measure({2, 1}, 9.2, 2.1);
  EXPECT_EQ(only_verdict().kind, Kind::explain);
  EXPECT_NE(only_verdict().reason.find("1.9 s in exposed communication"), std::string::npos)
      << only_verdict().reason;
  basis_.measured.clear();
  measure({2, 1}, 9.2, 0.2, 2);
  EXPECT_NE(only_verdict().reason.find("longer, 2 s waiting for data"), std::string::npos)
      << only_verdict().reason;
  basis_.measured.clear();
  measure({2, 1}, 9.2, 0.2).record.device = "cuda";
  EXPECT_NE(only_verdict().reason.find("gaps between launches"), std::string::npos) << only_verdict().reason;
  basis_.measured.clear();
  measure({4, 1}, 9.3, 2.3).record.ranks[2].exposed_communication_seconds = 0.3;
  EXPECT_NE(only_verdict().reason.find("waiting for rank 2 on n3"), std::string::npos)
      << only_verdict().reason;
}

TEST_F(PredictionTest, StepsThatGetShorterAreFlagged) {
  measure({1, 1}, 7.6);
  measure({2, 1}, 7.25, 0.25);
  EXPECT_EQ(only_verdict().kind, Kind::flag);
  EXPECT_NE(only_verdict().reason.find("1n1g"), std::string::npos) << only_verdict().reason;
}

TEST_F(PredictionTest, BucketsSlowerThanTheLinkAreExplained) {
  MeasuredCase& two = measure({2, 1}, 7.25, 0.25);
  two.record.collectives = {
      collective_record("bucket0.allreduce", "allreduce_sum", 8 << 20, std::vector{0.8, 0.9})};
  EXPECT_TRUE(verdicts().empty());
  basis_.measured[0].record.collectives = {
      collective_record("bucket0.allreduce", "allreduce_sum", 8 << 20, std::vector{1.2, 2.0})};
  EXPECT_EQ(only_verdict().kind, Kind::explain);
  EXPECT_NE(only_verdict().reason.find("bus bandwidth, 0.67 of"), std::string::npos) << only_verdict().reason;
}

TEST_F(PredictionTest, JsonHasEveryBucketAndVerdict) {
  measure({2, 1}, 9.2, 2.1);
  const ScalingPrediction prediction = predict();
  const nlohmann::ordered_json json =
      prediction_json(basis_, prediction, scaling_verdicts(basis_, prediction));
  EXPECT_EQ(json["schema"], kScalingSchema);
  EXPECT_EQ(json["cases"][1]["case"], "2n1g");
  EXPECT_EQ(json["cases"][1]["collectives"].size(), 2U);
  EXPECT_NEAR(json["cases"][1]["measured"]["ratio"].get<double>(), 7.2 / 9.2, 1e-9);
  EXPECT_EQ(json["verdicts"][0]["kind"], "EXPLAIN");
}

TEST(Cases, GoByDoublingsOfDevicesThenHosts) {
  const auto names = [](const std::vector<Layout>& cases) {
    std::string text;
    for (const Layout& one : cases) text += fmt::format("{}n{}g ", one.nodes, one.devices_per_node);
    return text;
  };
  EXPECT_EQ(names(cases_between(1, 24, 8)), "1n1g 1n2g 1n4g 1n8g 2n8g 3n8g ");
  EXPECT_EQ(names(cases_between(8, 32, 8)), "1n8g 2n8g 4n8g ");
  EXPECT_EQ(names(cases_between(1, 3, 8)), "1n1g 1n2g 1n3g ");
  EXPECT_EQ(names(cases_between(4, 4, 1)), "4n1g ");
}

class ScalingBasisTest : public testing::Test {
 protected:
  std::string write(const std::string& name, RunRecord record, bool with_profile = true) const {
    const auto folder = write_run_folder(scratch_, name, record);
    scratch_.write(name + "/program.json", two_layer_program().dump());
    if (with_profile) scratch_.write(name + "/profile.json", two_layer_profile().dump());
    return folder.string();
  }
  static RunRecord run(int devices, double images_per_second, double exposed = 0) {
    RunRecord record = example_run(images_per_second);
    record.world_size = record.devices_per_node = devices;
    record.rank_window_seconds.assign(static_cast<std::size_t>(devices), 1);
    record.step_seconds.assign(120, 8 * devices / images_per_second);
    record.exposed_communication_seconds = exposed;
    return record;
  }

  ScratchFolder scratch_;
};

TEST_F(ScalingBasisTest, TheProfiledRunWithTheFewestDevicesGivesTheStep) {
  write("runs/two", run(2, 14.0, 0.1));
  write("runs/one", run(1, 8.0));
  const ScalingBasis basis = load_scaling_basis({scratch_.path() + "/runs"});
  EXPECT_TRUE(basis.run.ends_with("one"));
  EXPECT_NEAR(basis.step.seconds(), 1, 1e-9);
  ASSERT_EQ(basis.measured.size(), 2U);
  EXPECT_EQ(basis.measured[1].layout, (Layout{1, 2}));
}

TEST_F(ScalingBasisTest, ARunOnSeveralDevicesComputesForWhatItDoesNotWait) {
  const ScalingBasis basis = load_scaling_basis({write("two", run(2, 16.0, 0.25))});
  EXPECT_NEAR(basis.step.seconds(), 0.75, 1e-9);
}

TEST_F(ScalingBasisTest, RunsThatSayNothingAreRefused) {
  const auto refused = [&](const std::vector<std::string>& words, const std::vector<std::string>& paths) {
    expect_error(ExitCode::bad_data, words, [&] { load_scaling_basis(paths); });
  };
  refused({"no run in", "--profile"}, {write("plain", run(1, 8), false)});
  RunRecord other = run(1, 8);
  other.precision = "bf16";
  refused({"2 configurations"}, {write("one", run(1, 8)), write("other", other)});
  const std::string damaged = write("damaged", run(1, 8));
  scratch_.write("damaged/profile.json", "[");
  refused({"damaged/profile.json", "no JSON object"}, {damaged});
  scratch_.write("damaged/profile.json", two_layer_program().dump());
  refused({"plumbline.profile/1"}, {damaged});
  refused({"leaves no time to compute"}, {write("waiting", run(2, 16, 1.5))});
}

TEST_F(ScalingBasisTest, LinksOfOtherHostsAreRefused) {
  RunRecord record = run(1, 8);
  record.ranks = {{"elsewhere", 0}};
  const ScalingBasis basis = load_scaling_basis({write("one", record)});
  expect_error(ExitCode::bad_data, {"--links", "n1, n2, n3, n4", "elsewhere", "--force"},
               [&] { check_hosts(basis, slow_links(), "links.json", true); });
}

}  // namespace
}  // namespace plumb
