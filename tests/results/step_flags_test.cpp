#include <gtest/gtest.h>

#include <cmath>

#include "results/anomalies/flags.h"
#include "results/statistics/robust.h"
#include "tests/results/simulated_steps.h"

namespace plumb {
namespace {

using Flagger = std::optional<Note> (*)(std::span<const double>);

std::optional<Note> warmup_after_20(std::span<const double> window) {
  return warmup_flag(window, 20);
}

double flagged_share(Flagger flag, int series, std::size_t steps, const StepNoise& of,
                     const std::function<double(std::size_t)>& factor = {}) {
  SimulatedNoise noise("steps");
  int flagged = 0;
  for (int i = 0; i < series; ++i) flagged += flag(simulated_steps(noise, steps, of, factor)).has_value();
  return static_cast<double>(flagged) / series;
}

const std::vector<StepNoise> kSteady{{0.003, 0}, {0.01, 0.3}, {0.01, 0.6}, {0.03, 0}, {0.03, 0.6}};

TEST(StepFlags, AreRareOnSteadyRuns) {
  constexpr int kSeries = 1000;
  for (const StepNoise& steady : kSteady) {
    const std::string where = std::to_string(steady.deviation) + ", " + std::to_string(steady.correlation);
    EXPECT_LE(flagged_share(warmup_after_20, kSeries, 100, steady), 0.005) << where;
    EXPECT_LE(flagged_share(drift_flag, kSeries, 100, steady), 0.005) << where;
    EXPECT_LE(flagged_share(outliers_flag, kSeries, 100, steady), 0.02) << where;
  }
}

TEST(StepFlags, AreRareOnShortRunsToo) {
  constexpr int kSeries = 1000;
  for (const StepNoise& steady : kSteady) {
    EXPECT_LE(flagged_share(warmup_after_20, kSeries, 30, steady), 0.02);
    EXPECT_LE(flagged_share(drift_flag, kSeries, 30, steady), 0.02);
    EXPECT_LE(flagged_share(outliers_flag, kSeries, 30, steady), 0.02);
  }
}

TEST(StepFlags, SayNothingOfAFewSteps) {
  std::vector<double> steps(29, 0.1);
  for (std::size_t i = 0; i < 10; ++i) steps[i] = 1;
  for (const Flagger flag : {&warmup_after_20, &drift_flag, &outliers_flag}) EXPECT_FALSE(flag(steps));
}

TEST(StepFlags, SayNothingOfEqualSteps) {
  const std::vector<double> steps(100, 0.1);
  for (const Flagger flag : {&warmup_after_20, &drift_flag, &outliers_flag}) EXPECT_FALSE(flag(steps));
}

TEST(WarmupFlag, FindsAStartThatIsSlower) {
  const auto cooling = [](std::size_t i) { return 1 + 0.15 * std::exp(-static_cast<double>(i) / 10); };
  EXPECT_GE(flagged_share(warmup_after_20, 300, 100, {0.01, 0.3}, cooling), 0.99);
  EXPECT_GE(flagged_share(warmup_after_20, 300, 100, {0.03, 0.3}, cooling), 0.85);
}

TEST(WarmupFlag, CallsNoDriftAWarmup) {
  const auto faster = [](std::size_t i) { return 1.1 - 0.001 * static_cast<double>(i); };
  EXPECT_LE(flagged_share(warmup_after_20, 300, 100, {0.003, 0.3}, faster), 0.02);
  EXPECT_GE(flagged_share(drift_flag, 300, 100, {0.003, 0.3}, faster), 0.99);
}

TEST(DriftFlag, FindsStepsThatBecomeSlower) {
  const auto heating = [](std::size_t i) { return 1 + 0.0008 * static_cast<double>(i); };
  EXPECT_GE(flagged_share(drift_flag, 300, 100, {0.01, 0.3}, heating), 0.98);
  std::vector<double> steps;
  for (std::size_t i = 0; i < 100; ++i) steps.push_back(0.1 + 0.0001 * static_cast<double>(i));
  const auto flag = drift_flag(steps);
  ASSERT_TRUE(flag);
  EXPECT_EQ(flag->text, "steps became 7.7 % slower over the window (from 102 ms to 109.9 ms)");
}

TEST(OutliersFlag, FindsAHangOfOneStep) {
  EXPECT_GE(
      flagged_share(outliers_flag, 300, 100, {0.03, 0.3}, [](std::size_t i) { return i == 50 ? 4.0 : 1.0; }),
      1);
}

TEST(Trend, FitsALineThroughNoise) {
  SimulatedNoise noise("line");
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(5 + 0.01 * i + 0.2 * noise.normal());
  values[3] = 1e6;
  const Trend trend = trend_of(values);
  EXPECT_NEAR(trend.slope, 0.01, 0.0001);
  EXPECT_NEAR(trend.at(0), 5, 0.05);
  EXPECT_NEAR(trend.deviation, 0.2, 0.015);
  EXPECT_LT(trend.correlation, 0.1);
}

}  // namespace
}  // namespace plumb
