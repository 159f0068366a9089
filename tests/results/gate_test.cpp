#include "results/compare/gate.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/results/simulated_runs.h"

namespace plumb {
namespace {

Configuration resnet50(int nodes) {
  Configuration configuration;
  configuration.framework = "Plumbline";
  configuration.model = "resnet50";
  configuration.precision = "fp16";
  configuration.device = "NVIDIA H200";
  configuration.data = "synthetic";
  configuration.batch_per_device = 128;
  configuration.nodes = nodes;
  configuration.devices_per_node = 8;
  return configuration;
}

Sample sample_of(const Configuration& configuration, const std::vector<double>& figures) {
  Sample sample;
  sample.configuration = configuration;
  for (const double figure : figures) {
    Measurement run;
    run.origin = "runs/" + std::to_string(sample.runs.size() + 1);
    run.images_per_second = figure;
    sample.runs.push_back(run);
  }
  return sample;
}

const std::vector<double> kBaseline{5871.4, 5902.2, 5889.0, 5895.6, 5911.3, 5880.7, 5868.9};

std::vector<double> times(double factor, std::size_t runs = 7) {
  std::vector<double> figures;
  for (std::size_t i = 0; i < runs; ++i) figures.push_back(kBaseline[i] * factor);
  return figures;
}

GateReport gate_of(const std::vector<double>& baseline, const std::vector<double>& figures,
                   const GateCriteria& criteria = {}) {
  return gate({sample_of(resnet50(1), baseline)}, {sample_of(resnet50(1), figures)}, criteria);
}

TEST(Gate, PassesWhatChanceExplains) {
  const std::vector<double> noisy{5000, 6900, 5300, 6500, 5100}, slower{4900, 6600, 5250, 6100, 5050};
  const GateReport report = gate_of(noisy, slower);
  EXPECT_GT(report.cases[0].slow_down, 0.02);
  EXPECT_EQ(gate_exit_code(report), ExitCode::ok);
  EXPECT_GT(report.cases[0].smallest_shown, 0.2);
}

TEST(Gate, RefusesOtherConfigurations) {
  for (const std::function<void(Configuration&)>& change : std::vector<std::function<void(Configuration&)>>{
           [](Configuration& c) { c.batch_per_device = 256; },
           [](Configuration& c) { c.device = "NVIDIA H100"; }, [](Configuration& c) { c.nodes = 2; },
           [](Configuration& c) { c.framework = "PyTorch"; },
           [](Configuration& c) { c.settings["overlap"] = "false"; }}) {
    Configuration other = resnet50(1);
    change(other);
    const GateReport report = gate({sample_of(resnet50(1), kBaseline)}, {sample_of(other, times(0.9))});
    EXPECT_EQ(gate_exit_code(report), ExitCode::bad_data);
    EXPECT_EQ(report.cases[0].differences.size(), 1u);
    EXPECT_EQ(report.only_new.size(), 1u);
    EXPECT_NE(gate_summary(report).find("the nearest of which differ: "), std::string::npos);
    const GateReport allowing =
        gate({sample_of(resnet50(1), kBaseline)}, {sample_of(other, times(1))}, {.allow_missing = true});
    EXPECT_EQ(gate_exit_code(allowing), ExitCode::bad_data) << "nothing in common";
  }
}

TEST(Gate, TheNearestRunsAreThoseOnAsManyDevices) {
  Configuration other = resnet50(1);
  other.batch_per_device = 256;
  other.precision = "fp32";
  const GateReport report = gate({sample_of(resnet50(1), kBaseline)},
                                 {sample_of(resnet50(2), times(2)), sample_of(other, times(1))});
  EXPECT_EQ(differences_text(report.cases[0].differences),
            "precision fp16 against fp32, batch per device 128 against 256");
}

TEST(Gate, TakesTheLatestRunsBeforeTheNewOnesFromAHistory) {
  Sample history = sample_of(resnet50(1), {100, 90, 95, 97, 80, 99});
  const std::vector<std::int64_t> started{30, 10, 20, 40, 60, 50};  // the new run is one of them
  for (std::size_t i = 0; i < started.size(); ++i) history.runs[i].started = started[i];
  Sample recent = sample_of(resnet50(1), {80});
  recent.runs[0].started = 50;
  const auto figures_of_last = [&](std::size_t count) {
    const auto latest = latest_before({history}, {recent}, count);
    return latest.empty() ? std::vector<double>{} : latest[0].figures();
  };
  EXPECT_EQ(figures_of_last(2), (std::vector<double>{100, 97}));
  EXPECT_EQ(figures_of_last(14), (std::vector<double>{90, 95, 100, 97}));
  recent.runs[0].started = 10;
  EXPECT_TRUE(figures_of_last(2).empty());
}

TEST(Gate, MatchesWhatIsKnownInPartUnlessTwoFit) {
  Configuration unknown = resnet50(1);
  unknown.device = unknown.data = "";
  EXPECT_EQ(gate_exit_code(gate({sample_of(unknown, kBaseline)}, {sample_of(resnet50(1), times(0.9))})),
            ExitCode::regression);
  Configuration other = resnet50(1);
  other.device = "NVIDIA H100";
  const std::vector<Sample> two{sample_of(resnet50(1), kBaseline), sample_of(other, kBaseline)};
  EXPECT_THROW(gate({sample_of(unknown, kBaseline)}, two), Error);
  EXPECT_THROW(gate(two, {sample_of(unknown, kBaseline)}), Error);
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
      regressions += mann_whitney(figures, baseline).p_less <= GateCriteria().significance &&
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
