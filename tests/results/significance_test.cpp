#include "results/statistics/significance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "results/statistics/statistics.h"
#include "tests/results/simulated_runs.h"

namespace plumb {
namespace {

std::vector<double> count_up(std::size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  std::reverse(values.begin(), values.end());
  return values;
}

void expect_interval(std::size_t n, double low, double high, double confidence) {
  const auto interval = median_interval(count_up(n));
  ASSERT_TRUE(interval) << n;
  EXPECT_EQ(interval->low, low) << n;
  EXPECT_EQ(interval->high, high) << n;
  EXPECT_NEAR(interval->confidence, confidence, 1e-12) << n;
}

// Coverage: 1 - 2 sum of C(n, i) / 2^n over the i values excluded at either end.
TEST(MedianInterval, TakesTheRanksThatOrderStatisticsSay) {
  expect_interval(2, 1, 2, 0.5);
  expect_interval(5, 1, 5, 1 - 2.0 / 32);
  expect_interval(7, 1, 7, 1 - 2.0 / 128);
  expect_interval(10, 1, 10, 1 - 2.0 / 1024);
  expect_interval(11, 2, 10, 1 - 2.0 * 12 / 2048);
  expect_interval(20, 5, 16, 1 - 2.0 * (1 + 20 + 190 + 1140 + 4845) / 1048576);
}

TEST(MedianInterval, SaysNothingOfOneRun) {
  EXPECT_FALSE(median_interval(count_up(1)));
  EXPECT_FALSE(median_interval({}));
}

TEST(MedianInterval, OfManyValuesIsNarrow) {
  const auto interval = median_interval(count_up(100001));
  EXPECT_NEAR(interval->low, 50001 - 368, 2);  // 2.33 * sqrt(n) / 2
  EXPECT_NEAR(interval->high, 50001 + 368, 2);
  EXPECT_GE(interval->confidence, 0.98);
}

// M1: 10,000 benchmarks of each kind. Chance alone moves the share by 0.13 % (7 runs) and 0.24 % (5 runs).
TEST(MedianInterval, OfSmallestAndLargestCoversTheMedianAsOftenAsItSays) {
  struct Sort {
    const char* name;
    double median;
    std::function<double(SimulatedNoise&)> draw;
  };
  const std::vector<Sort> sorts{
      {"normal", 100, [](SimulatedNoise& noise) { return 100 + 0.8 * noise.normal(); }},
      {"lognormal", 1, [](SimulatedNoise& noise) { return std::exp(0.5 * noise.normal()); }},
      {"exponential", std::log(2.0), [](SimulatedNoise& noise) { return -std::log(noise.uniform()); }},
      {"Cauchy", 0, [](SimulatedNoise& noise) { return noise.normal() / noise.normal(); }},
      {"two modes, one seen in 3 of 10 runs", 100 + 0.8 * 0.5659,  // P(x < 100 + 0.8 z) = 0.7 of 0.5 / 0.7
       [](SimulatedNoise& noise) {
         const bool fast = noise.uniform() < 0.3;
         return (fast ? 130 : 100) + 0.8 * noise.normal();
       }}};
  constexpr int kBenchmarks = 10000;
  for (const Sort& sort : sorts)
    for (const std::size_t runs : {std::size_t{5}, std::size_t{7}}) {
      SimulatedNoise noise(sort.name);
      int covered = 0;
      double said = 0;
      for (int i = 0; i < kBenchmarks; ++i) {
        std::vector<double> figures(runs);
        for (double& figure : figures) figure = sort.draw(noise);
        const auto interval = median_interval(figures);
        said = interval->confidence;
        covered += interval->low <= sort.median && sort.median <= interval->high;
      }
      EXPECT_NEAR(said, runs == 5 ? 0.938 : 0.984, 0.0005);
      EXPECT_NEAR(static_cast<double>(covered) / kBenchmarks, said, runs == 5 ? 0.0075 : 0.004) << sort.name;
    }
}

TEST(ShiftRatio, IsTheMedianOfAllRatios) {
  EXPECT_DOUBLE_EQ(shift_ratio(std::vector<double>{1, 2, 4}, std::vector<double>{2, 4, 8}), 2);
  EXPECT_DOUBLE_EQ(shift_ratio(std::vector<double>{100}, std::vector<double>{97}), 0.97);
  EXPECT_TRUE(std::isnan(shift_ratio(std::vector<double>{}, std::vector<double>{97})));
}

TEST(ShiftRatio, DoesNotFollowThreeRunsOfSeven) {
  const std::vector<double> first{99, 99.5, 100, 100, 100.5, 101, 101.5};
  const std::vector<double> second{10, 20, 30, 97, 97.5, 98, 98.5};
  EXPECT_NEAR(shift_ratio(first, second), 0.97, 0.02);
}

TEST(RatioInterval, HoldsTheRatio) {
  SimulatedNoise noise("ratio");
  const auto first = noise.figures(7, 100, 0.008), second = noise.figures(7, 103, 0.008);
  const Interval interval = ratio_interval(first, second);
  const double ratio = median(second) / median(first);
  EXPECT_LT(interval.low, ratio);
  EXPECT_GT(interval.high, ratio);
  EXPECT_LT(ratio_interval(first, second, 0.5).high, interval.high);
}

TEST(RatioInterval, CoversAboutAsOftenAsItsCommentSays) {
  constexpr int kBenchmarks = 1000;
  for (const auto& [runs, said] : {std::pair{3, 0.90}, {5, 0.95}, {7, 0.95}}) {
    SimulatedNoise noise("interval");
    int covered = 0;
    for (int i = 0; i < kBenchmarks; ++i) {
      const auto first = noise.figures(static_cast<std::size_t>(runs), 100, 0.008);
      const auto second = noise.figures(static_cast<std::size_t>(runs), 103, 0.008);
      const Interval interval = ratio_interval(first, second);
      covered += interval.low <= 1.03 && 1.03 <= interval.high;
    }
    EXPECT_NEAR(static_cast<double>(covered) / kBenchmarks, said, 0.025) << runs;
  }
}

TEST(RatioInterval, OfSingleRunsIsNone) {
  const Interval interval = ratio_interval(std::vector<double>{100}, std::vector<double>{97});
  EXPECT_EQ(interval.low, 0.97);
  EXPECT_EQ(interval.high, 0.97);
  EXPECT_EQ(interval.confidence, 0);
}

TEST(Compare, TakesNothingButThroughputs) {
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const std::vector<double> broken{100, bad, 101};
    EXPECT_THROW(compare(std::vector<double>{100, 99}, broken), Error) << bad;
    EXPECT_THROW(ratio_interval(broken, broken), Error) << bad;
  }
}

// The promised smallest difference is detected four times in five.
TEST(Compare, ShowsItsSmallestDifferenceFourTimesInFive) {
  for (const std::size_t runs : {std::size_t{5}, std::size_t{7}}) {
    SimulatedNoise noise("power");
    constexpr int kCases = 50;
    double smallest = 0;
    for (int i = 0; i < kCases; ++i)
      smallest += compare(noise.figures(runs, 100, 0.008), noise.figures(runs, 100, 0.008)).smallest_shown;
    smallest /= kCases;
    int shown = 0;
    for (int i = 0; i < kCases; ++i)
      shown += compare(noise.figures(runs, 100, 0.008), noise.figures(runs, 100 * (1 + smallest), 0.008))
                   .verdict == SpeedVerdict::faster;
    EXPECT_NEAR(static_cast<double>(shown) / kCases, 0.8, 0.17) << runs;  // standard error: 0.057
  }
}

TEST(Compare, OfManyRunsShowsLittle) {
  SimulatedNoise noise("many");
  const Comparison many = compare(noise.figures(100, 100, 0.008), noise.figures(100, 100, 0.008), 0);
  EXPECT_NEAR(many.smallest_shown, 2.80 * 0.008 * std::sqrt(2 / 100.0 * 1.047), 0.0006);
  EXPECT_TRUE(std::isinf(compare(noise.figures(3, 100, 0.008), noise.figures(3, 100, 0.008)).smallest_shown));
}

}  // namespace
}  // namespace plumb
