#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "results/statistics/significance.h"
#include "tests/results/simulated_runs.h"

namespace plumb {
namespace {

const std::vector<double> kSlow{355.1, 352.9, 358.4, 354.0, 356.2, 351.7, 353.3};

std::vector<double> times(const std::vector<double>& values, double factor) {
  std::vector<double> result;
  for (const double value : values) result.push_back(value * factor);
  return result;
}

TEST(Compare, CallsALargeDifferenceByItsName) {
  const Comparison faster = compare(kSlow, times(kSlow, 1.073));
  EXPECT_EQ(faster.verdict, SpeedVerdict::faster);
  EXPECT_NEAR(faster.ratio, 1.073, 1e-12);
  EXPECT_EQ(verdict_text(faster).substr(0, 31), "7.3 % faster (95 % interval 6.4");
  EXPECT_NE(verdict_text(faster).find("p = 0.0006)"), std::string::npos) << verdict_text(faster);
  const Comparison slower = compare(times(kSlow, 1.073), kSlow);
  EXPECT_EQ(slower.verdict, SpeedVerdict::slower);
  EXPECT_EQ(verdict_text(slower).substr(0, 12), "6.8 % slower");
  EXPECT_EQ(verdict_text(compare(kSlow, times(kSlow, 2.5))).substr(0, 18), "2.50 times as fast");
}

TEST(Compare, SaysWhatItWouldHaveShown) {
  const Comparison same = compare(kSlow, times(kSlow, 1.001));
  EXPECT_EQ(same.verdict, SpeedVerdict::none_shown);
  EXPECT_GT(same.smallest_shown, 0.01);
  EXPECT_LT(same.smallest_shown, 0.02);
  EXPECT_EQ(verdict_text(same).find("no difference shown; these runs would have shown 1."), 0u)
      << verdict_text(same);
}

TEST(Compare, CallsASmallDifferenceNone) {
  const std::vector<double> steady{100, 100.01, 100.02, 100.03, 100.04};
  const Comparison small = compare(steady, times(steady, 1.004));
  EXPECT_EQ(small.verdict, SpeedVerdict::none_shown);
  EXPECT_EQ(verdict_text(small), "no difference above 1 % shown (0.4 % faster, p = 0.008)");
  EXPECT_EQ(compare(steady, times(steady, 1.004), {.min_effect = 0.003}).verdict, SpeedVerdict::faster);
}

TEST(Compare, TakesNoFewRunsForAnAnswer) {
  const std::vector<double> two{100, 101}, three{100, 101, 102}, one{100};
  EXPECT_EQ(verdict_text(compare(two, times(three, 2))),
            "2 runs are too few to say; measure 4 on either side");
  EXPECT_EQ(verdict_text(compare(three, one)), "1 run is too few to say; measure 4 on either side");
  // None of the 20 orders of six values is as rare as 5 % two-sided.
  const Comparison threes = compare(three, times(three, 2));
  EXPECT_EQ(threes.verdict, SpeedVerdict::none_shown);
  EXPECT_TRUE(std::isinf(threes.smallest_shown));
  EXPECT_EQ(verdict_text(threes),
            "no difference shown; 3 and 3 runs can't show any at a significance of 5 %; measure 4 on either "
            "side");
  EXPECT_EQ(compare({kSlow.data(), 4}, times({kSlow.begin(), kSlow.begin() + 4}, 2)).verdict,
            SpeedVerdict::faster);
}

TEST(Compare, TakesNothingButThroughputs) {
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const std::vector<double> broken{100, bad, 101};
    EXPECT_THROW(compare(kSlow, broken), Error) << bad;
    EXPECT_THROW(ratio_interval(broken, kSlow), Error) << bad;
  }
}

// Many runs use a formula, few runs simulation: at the transition both agree.
TEST(SmallestShift, OfManyRunsFollowsThatOfFew) {
  for (const auto estimate : {ShownWhen::Estimate::medians, ShownWhen::Estimate::pairs}) {
    const ShownWhen shown{0.025, 0.02, estimate};
    const double few = smallest_shift(25, 25, 0.008, shown), many = smallest_shift(26, 26, 0.008, shown);
    EXPECT_NEAR(many, few, 0.0003);
    EXPECT_GT(smallest_shift(500, 500, 0.008, shown), 0.02);
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
  const Comparison many =
      compare(noise.figures(100, 100, 0.008), noise.figures(100, 100, 0.008), {.min_effect = 0});
  EXPECT_NEAR(many.smallest_shown, 2.80 * 0.008 * std::sqrt(2 / 100.0 * 1.047), 0.0006);
}

}  // namespace
}  // namespace plumb
