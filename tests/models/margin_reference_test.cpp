#include "tests/models/margin_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace plumb {
namespace {

double length(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

// Four images, ten classes, eight features.
MarginProblem waves() {
  MarginProblem problem{.images = 4, .embedding = 8, .classes = 10, .labels = {3, 7, 0, 9}};
  for (int i = 0; i < 32; ++i) problem.features.push_back(std::sin(0.37 * i + 0.11));
  for (int i = 0; i < 80; ++i) problem.centers.push_back(std::cos(0.23 * i + 0.05));
  return problem;
}

struct Case {
  const char* name;
  Margins margins;
  MarginLoss::Gradient gradient;
  double loss, feature_gradient_length, centre_gradient_length, first_feature_gradient;
};

// Computed independently in NumPy, and confirmed by finite differences to 2e-8.
const Case kCases[] = {{"arcface",
                        {1, 0.5, 0},
                        MarginLoss::Gradient::exact,
                        78.064953766,
                        12.079427909,
                        13.048544518,
                        -4.640843159},
                       {"straight-through",
                        {1, 0.5, 0},
                        MarginLoss::Gradient::straight_through,
                        78.064953766,
                        13.337096881,
                        15.055791552,
                        -2.034191996},
                       {"cosface",
                        {1, 0, 0.4},
                        MarginLoss::Gradient::exact,
                        81.778523418,
                        13.337096944,
                        15.055791607,
                        -2.034192128},
                       {"combined",
                        {1, 0.3, 0.2},
                        MarginLoss::Gradient::exact,
                        82.315179903,
                        12.642724591,
                        13.878842244,
                        -3.702271119}};

TEST(MarginReference, GivesThePublishedLossesAndGradients) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    MarginProblem problem = waves();
    problem.margins = one.margins;
    problem.gradient = one.gradient;
    const MarginAnswer answer = margin_reference(problem);
    EXPECT_NEAR(answer.loss, one.loss, 1e-6);
    EXPECT_NEAR(length(answer.feature_gradient), one.feature_gradient_length, 1e-6);
    EXPECT_NEAR(length(answer.centre_gradient), one.centre_gradient_length, 1e-6);
    EXPECT_NEAR(answer.feature_gradient[0], one.first_feature_gradient, 1e-6);
  }
}

// (loss(+h) - loss(-h)) / 2h for one number of the problem.
double slope_by(MarginProblem problem, std::vector<double> MarginProblem::*matrix, std::size_t index) {
  constexpr double kStep = 1e-6;
  const double at = (problem.*matrix)[index];
  (problem.*matrix)[index] = at + kStep;
  const double above = margin_reference(problem).loss;
  (problem.*matrix)[index] = at - kStep;
  return (above - margin_reference(problem).loss) / (2 * kStep);
}

void expect_slopes(const MarginProblem& problem) {
  const MarginAnswer answer = margin_reference(problem);
  for (std::size_t i = 0; i < problem.features.size(); ++i) {
    EXPECT_NEAR(answer.feature_gradient[i], slope_by(problem, &MarginProblem::features, i), 1e-6) << i;
  }
  for (std::size_t i = 0; i < problem.centers.size(); ++i) {
    EXPECT_NEAR(answer.centre_gradient[i], slope_by(problem, &MarginProblem::centers, i), 1e-6) << i;
  }
}

TEST(MarginReference, ExactGradientsMatchFiniteDifferences) {
  for (const Margins margins : {Margins{1, 0.5, 0}, Margins{1, 0, 0.4}, Margins{0.9, 0.4, 0.15}}) {
    MarginProblem problem = waves();
    problem.margins = margins;
    problem.scale = 8;
    expect_slopes(problem);
  }
}

TEST(MarginReference, GradientsOfASampleMatchFiniteDifferencesAndLeaveTheOthersAlone) {
  MarginProblem problem = waves();
  problem.scale = 8;
  problem.sample = {0, 3, 4, 7, 9};
  expect_slopes(problem);
  const std::vector<double> gradient = margin_reference(problem).centre_gradient;
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(gradient[8 + i], 0);
}

TEST(MarginReference, ASampleOfAllClassesIsNoSample) {
  MarginProblem problem = waves();
  const MarginAnswer all = margin_reference(problem);
  problem.sample = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  const MarginAnswer sampled = margin_reference(problem);
  EXPECT_NEAR(sampled.loss, all.loss, 1e-12);
  for (std::size_t i = 0; i < all.centre_gradient.size(); ++i) {
    EXPECT_NEAR(sampled.centre_gradient[i], all.centre_gradient[i], 1e-12);
  }
}

TEST(MarginReference, StaysFiniteWhereFeaturesLieOnACentreOrOppositeToIt) {
  MarginProblem problem = waves();
  for (std::size_t i = 0; i < 8; ++i) {
    problem.features[i] = 3 * problem.centers[3 * 8 + i];
    problem.features[8 + i] = -2 * problem.centers[7 * 8 + i];
    problem.features[16 + i] = 0;
  }
  const MarginAnswer answer = margin_reference(problem);
  EXPECT_TRUE(std::isfinite(answer.loss));
  for (const double value : answer.feature_gradient) EXPECT_TRUE(std::isfinite(value));
  for (const double value : answer.centre_gradient) EXPECT_TRUE(std::isfinite(value));
}

TEST(MarginReference, RefusesSizesThatDoNotFitAndLabelsThatTakeNoPart) {
  MarginProblem problem = waves();
  problem.sample = {0, 1, 2};
  EXPECT_THROW(margin_reference(problem), std::invalid_argument);
  problem = waves();
  problem.labels[0] = 10;
  EXPECT_THROW(margin_reference(problem), std::invalid_argument);
  problem = waves();
  problem.features.pop_back();
  EXPECT_THROW(margin_reference(problem), std::invalid_argument);
}

}  // namespace
}  // namespace plumb
