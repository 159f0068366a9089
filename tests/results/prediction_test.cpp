// Predictions of cases, their intervals, and the verdicts on what was measured.
#include "results/simulation/prediction.h"

#include <gtest/gtest.h>

#include "results/simulation/scaling_verdicts.h"
#include "tests/results/run_folder.h"
#include "tests/results/simulated_program.h"

namespace plumb {
namespace {

// 10 MiB over hosts of one device: 0.1 s a MiB and direction.
Links slow_links() {
  return {.comm = "mpi",
          .hosts = {{"n1", 1}, {"n2", 1}, {"n3", 1}, {"n4", 1}},
          .between_hosts = Link{0, 10.0 * (1 << 20)}};
}

class PredictionTest : public testing::Test {
 protected:
  PredictionTest() {
    basis_.configuration.model = "resnet50";
    basis_.configuration.batch_per_device = 7;
    basis_.configuration.nodes = basis_.configuration.devices_per_node = 1;
    basis_.run = "runs/one";
    basis_.step = two_layer_step();
    basis_.fastest_seconds = basis_.slowest_seconds = 7;
  }

  // A run of `seconds` a step, of which every rank waits `exposed` for collectives.
  MeasuredCase& measure(Layout layout, double seconds, double exposed = 0, double data = 0) {
    const double images_per_second = layout.devices() * 7 / seconds;
    MeasuredCase measured{
        .layout = layout, .images_per_second = images_per_second, .record = example_run(images_per_second)};
    measured.record.world_size = layout.devices();
    measured.record.exposed_communication_seconds = exposed;
    measured.record.data_wait_seconds = data;
    for (int rank = 0; rank < layout.devices(); ++rank)
      measured.record.ranks.push_back({fmt::format("n{}", rank / layout.devices_per_node + 1), exposed});
    basis_.measured.push_back(measured);
    return basis_.measured.back();
  }

  ScalingPrediction predict() const { return predict_scaling(basis_, slow_links(), {}, cases_up_to(4, 1)); }
  Note only_verdict() const {
    const std::vector<Note> all = judge_scaling(basis_, slow_links(), {}, {}, 4).verdicts;
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? Note() : all.front();
  }

  ScalingBasis basis_;
};

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

TEST_F(PredictionTest, TheExchangeIsThatOfTheMeasuredRuns) {
  MeasuredCase& two = measure({2, 1}, 7.25, 0.25);
  basis_.step.collectives.clear();  // as of a run on one device
  two.record.config = {{"bucket_mb", 16.0}, {"reduce_dtype", "fp16"}};
  const StepModel step = predict().step;
  EXPECT_EQ(step.collectives.size(), 2U);
  EXPECT_EQ(step.sent_element_bytes, 2);
}

TEST_F(PredictionTest, StepsThatGetShorterAreFlagged) {
  measure({1, 1}, 7.6);
  measure({2, 1}, 7.25, 0.25);
  EXPECT_EQ(only_verdict().kind, "FLAG");
  EXPECT_NE(only_verdict().text.find("1n1g"), std::string::npos) << only_verdict().text;
}

TEST(Cases, GoByDoublingsOfDevicesThenHosts) {
  const auto names = [](const std::vector<Layout>& cases) {
    std::string text;
    for (const Layout& one : cases) text += one.name() + " ";
    return text;
  };
  EXPECT_EQ(names(cases_up_to(24, 8)), "1n1g 1n2g 1n4g 1n8g 2n8g 3n8g ");
  EXPECT_EQ(names(cases_up_to(3, 8)), "1n1g 1n2g 1n3g ");
  EXPECT_EQ(names(cases_up_to(4, 1)), "1n1g 2n1g 4n1g ");
}

}  // namespace
}  // namespace plumb
