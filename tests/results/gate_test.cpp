#include "results/compare/gate.h"

#include <gtest/gtest.h>

#include "tests/results/simulated_runs.h"

namespace plumb {
namespace {

Sample gate_sample(const std::vector<double>& figures) {
  Sample sample{{.framework = "Plumbline", .model = "resnet50", .nodes = 1, .devices_per_node = 8}, {}};
  for (const double figure : figures) sample.runs.push_back({.images_per_second = figure});
  return sample;
}

GateReport gate_of(const std::vector<double>& baseline, const std::vector<double>& figures) {
  return gate({gate_sample(baseline)}, {gate_sample(figures)});
}

TEST(Gate, PassesWhatChanceExplains) {
  const std::vector<double> noisy{5000, 6900, 5300, 6500, 5100}, slower{4900, 6600, 5250, 6100, 5050};
  const GateReport report = gate_of(noisy, slower);
  EXPECT_GT(report.cases[0].slow_down, 0.02);
  EXPECT_EQ(gate_exit_code(report), ExitCode::ok);
  EXPECT_GT(report.cases[0].smallest_shown, 0.2);
}

// The documented promise: 7 runs per side that vary by 0.8 %, over 10,000 cases each.
TEST(Gate, FindsThreePercentAndRaisesNoFalseAlarm) {
  struct Promise {
    double slow_down, max_regression;
    double least, most;  // share of cases reported as a regression
  };
  constexpr int kCases = 10000;
  for (const Promise& promise : {Promise{0.03, 0.02, 0.97, 1}, Promise{0, 0.02, 0, 0.001},
                                 Promise{0, 0, 0.03, 0.05}, Promise{0.01, 0.02, 0, 0.05}}) {
    SimulatedNoise noise("gate");
    int regressions = 0;
    for (int i = 0; i < kCases; ++i) {
      const auto baseline = noise.figures(7, 5000, 0.008);
      const auto figures = noise.figures(7, 5000 * (1 - promise.slow_down), 0.008);
      // gate()'s criterion, without its slower computation of the smallest detectable slowdown.
      regressions += mann_whitney(figures, baseline).p_less <= kSignificance &&
                     1 - shift_ratio(baseline, figures) > promise.max_regression;
    }
    const double share = static_cast<double>(regressions) / kCases;
    EXPECT_GE(share, promise.least) << promise.slow_down << ", " << promise.max_regression;
    EXPECT_LE(share, promise.most) << promise.slow_down << ", " << promise.max_regression;
  }
}

TEST(Gate, JudgesAsItsSimulationDoes) {
  SimulatedNoise noise("gate itself");
  int found = 0, false_alarms = 0;
  constexpr int kCases = 100;
  for (int i = 0; i < kCases; ++i) {
    const auto baseline = noise.figures(7, 5000, 0.008), same = noise.figures(7, 5000, 0.008);
    const auto slower = noise.figures(7, 5000 * 0.97, 0.008);
    false_alarms += gate_exit_code(gate_of(baseline, same)) == ExitCode::regression;
    const GateReport report = gate_of(baseline, slower);
    const bool regression =
        mann_whitney(slower, baseline).p_less <= 0.05 && 1 - shift_ratio(baseline, slower) > 0.02;
    EXPECT_EQ(gate_exit_code(report) == ExitCode::regression, regression);
    found += regression;
  }
  EXPECT_GE(found, 95);
  EXPECT_EQ(false_alarms, 0);
}

// Non-normal spread: one run in ten is slower by up to 5 %, on either side.
TEST(Gate, HoldsWithRunsThatAreFarOff) {
  SimulatedNoise noise("far off");
  const auto runs = [&](double center) {
    auto figures = noise.figures(7, center, 0.008);
    for (double& figure : figures)
      if (noise.uniform() < 0.1) figure *= 1 - 0.05 * noise.uniform();
    return figures;
  };
  constexpr int kCases = 10000;
  int found = 0, false_alarms = 0;
  for (int i = 0; i < kCases; ++i) {
    const auto baseline = runs(5000), same = runs(5000), slower = runs(5000 * 0.97);
    const auto fails = [&](const std::vector<double>& figures) {
      return mann_whitney(figures, baseline).p_less <= 0.05 && 1 - shift_ratio(baseline, figures) > 0.02;
    };
    false_alarms += fails(same);
    found += fails(slower);
  }
  EXPECT_GE(found, kCases * 95 / 100);
  EXPECT_LE(false_alarms, kCases / 100);
}

}  // namespace
}  // namespace plumb
