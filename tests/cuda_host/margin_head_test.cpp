// Whole margin heads, from features to gradients of features and class centres, on one or more ranks of the
// emulated GPU against the definition in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/cuda_host/guarded_tensor.h"
#include "tests/cuda_host/margin_ranks.h"
#include "tests/models/margin_reference.h"

namespace plumb::cuda {
namespace {

// Labels `stride` apart, starting at `first`; duplicates once they wrap around.
HeadInput input_of(const HeadCase& by, std::int64_t stride = 7, std::int64_t first = 0) {
  const std::int64_t all = by.images * by.ranks;
  HeadInput input{
      .features = normal_values(DType::f32, static_cast<std::size_t>(all * by.embedding), 21),
      .centres = normal_values(by.rows_dtype, static_cast<std::size_t>(by.classes * by.embedding), 22),
      .labels = {}};
  for (std::int64_t i = 0; i < all; ++i) input.labels.push_back((first + i * stride) % by.classes);
  return input;
}

MarginAnswer wanted_answer(const HeadCase& by, const HeadInput& input, std::vector<std::int64_t> sample) {
  return margin_reference({.images = by.images * by.ranks,
                           .embedding = by.embedding,
                           .classes = by.classes,
                           .features = input.features,
                           .centres = input.centres,
                           .labels = input.labels,
                           .margins = by.margins,
                           .scale = by.scale,
                           .gradient = by.gradient,
                           .sample = std::move(sample)});
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (double value : values) most = std::max(most, std::abs(value));
  return most;
}

// `units`: allowed error of a logit in roundings of the rows' dtype, times the scale.
void expect_answer(const HeadCase& by, const HeadInput& input, double units) {
  SCOPED_TRACE(testing::Message() << by.ranks << " ranks, " << by.images << " images, " << by.classes << " x "
                                  << by.embedding << " in " << name_of(by.rows_dtype));
  const HeadAnswer found = run_head(by, input);
  const MarginAnswer wanted =
      wanted_answer(by, input, by.head == Head::sampled ? found.sample : std::vector<std::int64_t>{});
  const double tolerance = units * unit_roundoff(by.rows_dtype) * by.scale;
  EXPECT_NEAR(found.loss, wanted.loss, tolerance * std::max(1.0, wanted.loss / by.scale));
  const auto expect = [&](const std::vector<double>& values, const std::vector<double>& those) {
    ASSERT_EQ(values.size(), those.size());
    const double allowed = tolerance * largest(those);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], those[i], allowed) << "element " << i;
  };
  expect(found.feature_gradient, wanted.feature_gradient);
  expect(found.centre_gradient, wanted.centre_gradient);
}

// X = sin(.37 i + .11), W = cos(.23 i + .05), with flat index i.
TEST(MarginHead, GivesThePublishedReferenceValues) {
  HeadCase by{.images = 4, .embedding = 8, .classes = 10, .head = Head::replicated};
  HeadInput input{
      .features = std::vector<double>(32), .centres = std::vector<double>(80), .labels = {3, 7, 0, 9}};
  for (std::size_t i = 0; i < 32; ++i) input.features[i] = std::sin(0.37 * static_cast<double>(i) + 0.11);
  for (std::size_t i = 0; i < 80; ++i) input.centres[i] = std::cos(0.23 * static_cast<double>(i) + 0.05);
  const auto norm = [](const std::vector<double>& values) {
    return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
  };
  const auto expect = [&](const Margins& margins, MarginLoss::Gradient gradient,
                          std::array<double, 4> wanted) {
    by.margins = margins, by.gradient = gradient;
    const HeadAnswer found = run_head(by, input);
    EXPECT_NEAR(found.loss, wanted[0], 1e-4);
    EXPECT_NEAR(norm(found.feature_gradient), wanted[1], 1e-4);
    EXPECT_NEAR(norm(found.centre_gradient), wanted[2], 1e-4);
    EXPECT_NEAR(found.feature_gradient[0], wanted[3], 1e-4);
  };
  using enum MarginLoss::Gradient;
  expect({1, 0.5, 0}, exact, {78.064953766, 12.079427909, 13.048544518, -4.640843159});
  expect({1, 0.5, 0}, straight_through, {78.064953766, 13.337096881, 15.055791552, -2.034191996});
  expect({1, 0, 0.4}, exact, {81.778523418, 13.337096944, 15.055791607, -2.034192128});
  expect({1, 0.3, 0.2}, exact, {82.315179903, 12.642724591, 13.878842244, -3.702271119});
}

TEST(MarginHead, IsTheSameOverAnyNumberOfRanks) {
  for (int ranks : {1, 2, 3, 4}) {
    const HeadCase by{.images = 12 / ranks, .embedding = 24, .classes = 37, .ranks = ranks, .scale = 16};
    expect_answer(by, input_of(by), 16);
    expect_answer(by, input_of(by, 0, 36), 16);  // one label, on the last rank: no positives elsewhere
    const HeadCase large{.images = 6, .embedding = 16, .classes = 2500, .ranks = ranks, .scale = 30};
    expect_answer(large, input_of(large, 417), 16);
  }
}

TEST(MarginHead, TakesPartOfTheClassesWhereTheyAreSampled) {
  for (int ranks : {1, 2, 3}) {
    for (double rate : {0.1, 0.5, 1.0}) {
      HeadCase by{.images = 6,
                  .embedding = 8,
                  .classes = 41,
                  .ranks = ranks,
                  .head = Head::sampled,
                  .sample_rate = rate,
                  .scale = 16,
                  .iteration = 5};
      expect_answer(by, input_of(by), 16);
      expect_answer(by, input_of(by, 1, 8), 16);  // across a shard boundary
      expect_answer(by, input_of(by, 0, 3), 16);  // one label
    }
  }
}

TEST(MarginHead, KeepsRowsAndProductsInHalfPrecision) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    for (Head head : {Head::replicated, Head::sampled}) {
      HeadCase by{.images = 6,
                  .embedding = 24,
                  .classes = 51,
                  .head = head,
                  .sample_rate = 0.5,
                  .rows_dtype = dtype,
                  .scale = 8,
                  .loss_scale = 512};
      expect_answer(by, input_of(by), 2);
      by.embedding = 8, by.classes = 1200;
      expect_answer(by, input_of(by), 2);
    }
  }
}

TEST(MarginHead, CountsOwnTargetsWithTheLargestLogit) {
  HeadCase by{.images = 3, .classes = 8, .ranks = 2, .margins = {1, 0, 0.1}, .scale = 10};
  HeadInput input = input_of(by);
  input.centres.assign(64, 0.0);
  for (std::size_t k = 0; k < 8; ++k) input.centres[8 * k + k % 4] = k < 4 ? 1 : -1;
  input.features.assign(48, 0.0);
  input.labels = {0, 1, 2, 3, 4, 5};
  for (std::size_t i = 0; i < 6; ++i) input.features[8 * i + i % 4] = i < 4 ? 2 : -2;
  EXPECT_EQ(run_head(by, input).top1, 6);
  input.labels = {1, 1, 2, 3, 4, 4};
  EXPECT_EQ(run_head(by, input).top1, 4);
}

TEST(MarginHead, IsNaNOfFeaturesThatAreNone) {
  const HeadCase by{.images = 2, .ranks = 2};
  HeadInput input = input_of(by);
  input.features[5] = std::nan("");
  EXPECT_TRUE(std::isnan(run_head(by, input).loss));
}

TEST(MarginHead, LeavesAnImageWithoutFeaturesFinite) {
  const HeadCase by{.images = 2};
  HeadInput input = input_of(by);
  std::fill_n(input.features.begin(), by.embedding, 0.0);
  EXPECT_TRUE(std::isfinite(run_head(by, input).loss));
}

}  // namespace
}  // namespace plumb::cuda
