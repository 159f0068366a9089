#include <gtest/gtest.h>

#include "base/error.h"
#include "results/statistics/significance.h"
#include "tests/results/simulated_runs.h"

namespace plumb {
namespace {

// Values from scipy 1.17.1: mannwhitneyu(a, b, method='exact', alternative='less' and 'two-sided').
TEST(MannWhitney, GivesScipysExactValues) {
  const std::vector<double> five{101.2, 99.8, 100.4, 102.0, 98.9}, other{103.1, 101.5, 104.0, 102.2, 100.9};
  RankTest test = mann_whitney(five, other);
  EXPECT_EQ(test.u, 3);
  EXPECT_NEAR(test.p_less, 0.027777777777777776, 1e-15);
  EXPECT_NEAR(test.p_two_sided, 0.05555555555555555, 1e-15);

  const std::vector<double> a{355.1, 352.9, 358.4, 354.0, 356.2, 351.7, 353.3};
  const std::vector<double> b{349.8, 352.1, 347.7, 350.4, 353.6, 348.9, 346.0};
  test = mann_whitney(a, b);
  EXPECT_EQ(test.u, 45);
  EXPECT_NEAR(test.p_less, 0.9979603729603729, 1e-15);
  EXPECT_NEAR(test.p_two_sided, 0.006993006993006993, 1e-15);
  test = mann_whitney(std::span(a).first(3), b);
  EXPECT_EQ(test.u, 20);
  EXPECT_NEAR(test.p_less, 0.9916666666666666, 1e-15);
  EXPECT_NEAR(test.p_two_sided, 0.03333333333333333, 1e-15);
}

TEST(MannWhitney, IsExactForFiftyValues) {
  std::vector<double> a, b;
  for (int i = 0; i < 25; ++i) {
    a.push_back(100 + i * 0.37);
    b.push_back(103.03 + i * 0.41);
  }
  const RankTest test = mann_whitney(a, b);
  EXPECT_EQ(test.u, 128);
  EXPECT_NEAR(test.p_less, 0.00011025518503356886, 1e-17);
  EXPECT_NEAR(test.p_two_sided, 0.00022051037006713773, 1e-17);
}

// scipy: mannwhitneyu(a, b, method=PermutationMethod(n_resamples=1000000)), which then enumerates all orders.
TEST(MannWhitney, CountsOrdersWithTiesToo) {
  const RankTest test =
      mann_whitney(std::vector<double>{3, 5, 5, 6, 8}, std::vector<double>{5, 7, 8, 8, 9, 9});
  EXPECT_EQ(test.u, 5);
  EXPECT_NEAR(test.p_less, 0.03896103896103896, 1e-15);
  EXPECT_NEAR(test.p_two_sided, 0.07792207792207792, 1e-15);
}

// scipy: mannwhitneyu(a, b, method='asymptotic', use_continuity=True).
TEST(MannWhitney, OfManyValuesIsScipysNormalApproximation) {
  std::vector<double> a, b;
  for (int i = 0; i < 30; ++i) a.push_back(100 + i * 7 % 31 * 0.5);
  for (int i = 0; i < 28; ++i) b.push_back(101.5 + i * 11 % 29 * 0.5);
  const RankTest test = mann_whitney(a, b);
  EXPECT_EQ(test.u, 362);
  EXPECT_NEAR(test.p_less, 0.18536957062948772, 1e-12);
  EXPECT_NEAR(test.p_two_sided, 0.37073914125897545, 1e-12);
}

TEST(MannWhitney, SeesNothingInEqualValues) {
  for (const std::size_t runs : {std::size_t{5}, std::size_t{40}}) {
    const std::vector<double> same(runs, 357.48);
    const RankTest test = mann_whitney(same, same);
    EXPECT_EQ(test.p_less, 1) << runs;
    EXPECT_EQ(test.p_two_sided, 1) << runs;
  }
  EXPECT_EQ(mann_whitney({}, std::vector<double>{1, 2}).p_two_sided, 1);
}

TEST(MannWhitney, TakesNoNaN) {
  EXPECT_THROW(mann_whitney(std::vector<double>{1, std::nan("")}, std::vector<double>{2}), Error);
}

TEST(MannWhitney, IsWrongNoMoreOftenThanItSays) {
  SimulatedNoise noise("no difference");
  constexpr int kCases = 10000;
  int less = 0, two_sided = 0;
  for (int i = 0; i < kCases; ++i) {
    const RankTest test = mann_whitney(noise.figures(7, 100, 0.008), noise.figures(7, 100, 0.008));
    less += test.p_less <= 0.05;
    two_sided += test.p_two_sided <= 0.05;
  }
  // 3432 orders: levels of 0.0487 one-sided and 0.0379 two-sided; chance moves them by 0.002.
  EXPECT_NEAR(static_cast<double>(less) / kCases, 0.0487, 0.0065);
  EXPECT_NEAR(static_cast<double>(two_sided) / kCases, 0.0379, 0.006);
}

}  // namespace
}  // namespace plumb
