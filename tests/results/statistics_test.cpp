#include "results/statistics/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plumb {
namespace {

TEST(RoundNumpy, TakesTheHalfUpThatScalingMakes) {
  EXPECT_EQ(round_numpy(1358.635, 2), 1358.64);
}

TEST(RoundNumpy, TakesTiesToEven) {
  EXPECT_EQ(round_numpy(0.125, 2), 0.12);
  EXPECT_EQ(round_numpy(0.375, 2), 0.38);
  EXPECT_EQ(round_numpy(-0.125, 2), -0.12);
}

TEST(RoundDecimal, TakesTheExactValue) {
  EXPECT_EQ(round_decimal(1358.635, 2), 1358.63);
  EXPECT_EQ(round_decimal(0.125, 2), 0.12);
  EXPECT_EQ(round_decimal(2.675, 2), 2.67);
  EXPECT_EQ(round_decimal(399.00000000000006, 4), 399.0);
}

TEST(RoundDecimal, LeavesWhatHasNoDecimals) {
  EXPECT_TRUE(std::isnan(round_decimal(std::nan(""), 2)));
  EXPECT_EQ(round_decimal(HUGE_VAL, 2), HUGE_VAL);
  EXPECT_EQ(round_decimal(std::numeric_limits<double>::max(), 2), std::numeric_limits<double>::max());
}

TEST(Median, IsTheMiddleOrTheMeanOfTwo) {
  using Values = std::vector<double>;
  EXPECT_EQ(median(Values{3, 1, 2}), 2);
  EXPECT_EQ(median(Values{4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median(Values{7}), 7);
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_TRUE(std::isnan(median(Values{1, std::nan(""), 2})));
}

TEST(Mean, OfNothingIsNaN) {
  EXPECT_TRUE(std::isnan(mean({})));
}

// np.mean of [0.1, 0.2, …, n/10]; plain left-to-right sums differ in the last bits for each of these.
TEST(Mean, AddsInTheOrderOfNumpy) {
  const auto tenths = [](int n) {
    std::vector<double> values;
    for (int i = 1; i <= n; ++i) values.push_back(i * 0.1);
    return values;
  };
  EXPECT_EQ(mean(tenths(8)), 0.45);
  EXPECT_EQ(mean(tenths(9)), 0.5);
  EXPECT_EQ(mean(tenths(11)), 0.6);
  EXPECT_EQ(mean(tenths(143)), 7.199999999999999);
  EXPECT_EQ(mean(tenths(144)), 7.25);
  EXPECT_EQ(mean(tenths(972)), 48.650000000000006);
  EXPECT_EQ(mean(tenths(992)), 49.650000000000006);
}

TEST(PairwiseSum, KeepsSmallAddendsThatARunningSumLoses) {
  std::vector<double> values(1 << 16, 1e-16);
  values.front() = 1;
  EXPECT_NEAR(pairwise_sum(values) - 1, 65535e-16, 1e-14);
}

}  // namespace
}  // namespace plumb
