// The margin loss on one CPU device; tests/conformance has its instructions' values.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/fast_exp2.h"
#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "tests/kernels/margin_setup.h"

namespace plumb {
namespace {

double length(const std::vector<float>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

// Within `tolerance` of the largest magnitude.
void expect_near(const std::vector<float>& values, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  double largest = 0;
  for (double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * largest) << "element " << i;
}

struct Row {
  const char* name;
  Margins margins;
  MarginLoss::Gradient gradient;
  double loss, feature_gradient_length, centre_gradient_length, first_feature_gradient;
};

// Computed independently in NumPy, and confirmed by finite differences to 2e-8.
const Row kRows[] = {{"arcface",
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

TEST(CpuMarginHead, GivesThePublishedLossesAndGradients) {
  MarginTensors tensors{.features = {}, .centers = {}, .labels = {3, 7, 0, 9}};
  for (int i = 0; i < 32; ++i) tensors.features.push_back(static_cast<float>(std::sin(0.37 * i + 0.11)));
  for (int i = 0; i < 80; ++i) tensors.centers.push_back(static_cast<float>(std::cos(0.23 * i + 0.05)));
  for (const Row& row : kRows) {
    for (Head head : {Head::replicated, Head::sharded, Head::sampled}) {
      SCOPED_TRACE(row.name);
      const MarginRun run =
          run_margin({.head = head, .margins = row.margins, .gradient = row.gradient}, tensors);
      EXPECT_NEAR(run.losses[0], row.loss, 1e-4);
      EXPECT_NEAR(length(run.feature_gradient), row.feature_gradient_length, 1e-4);
      EXPECT_NEAR(length(run.centre_gradient), row.centre_gradient_length, 1e-4);
      EXPECT_NEAR(run.feature_gradient[0], row.first_feature_gradient, 1e-4);
    }
  }
}

TEST(CpuMarginHead, CountsImagesWhoseTargetIsLargestInSpiteOfItsMargin) {
  const MarginSetup setup{.images = 3, .embedding = 2, .classes = 2};
  // Angles to the own center: 0, 40 and 80 degrees; to the other: 90, 50 and 10. The margin is 28.6 degrees.
  const auto degrees = [](double angle) { return static_cast<float>(angle * std::acos(-1.0) / 180); };
  MarginTensors tensors{.features = {}, .centers = {1, 0, 0, 1}, .labels = {0, 0, 0}};
  for (double angle : {0.0, 40.0, 80.0})
    tensors.features.insert(tensors.features.end(), {std::cos(degrees(angle)), std::sin(degrees(angle))});
  EXPECT_EQ(run_margin(setup, tensors).top1[0], 1);
}

TEST(CpuMarginHead, FeaturesOfAnySizeHaveTheSameLoss) {
  const MarginSetup setup{.images = 3, .embedding = 16, .classes = 12};
  MarginTensors tensors = random_margin_tensors(setup, 3);
  const double loss = run_margin(setup, tensors).losses[0];
  for (float size : {1e-9f, 1e9f, 1e37f}) {
    MarginTensors sized = tensors;
    for (float& feature : sized.features) feature *= size;
    EXPECT_NEAR(run_margin(setup, sized).losses[0], loss, 1e-4) << size;
  }
}

TEST(CpuMarginHead, LabelsThatNoRankHasTouchNothingElse) {
  for (Head head : {Head::replicated, Head::sharded, Head::sampled}) {
    const MarginSetup setup{.images = 4, .classes = 10, .head = head, .sample_rate = 0.5};
    MarginTensors tensors = random_margin_tensors(setup, 5);
    tensors.labels = {-1, 10, std::numeric_limits<std::int32_t>::max(),
                      std::numeric_limits<std::int32_t>::min()};
    const MarginRun run = run_margin(setup, tensors);
    EXPECT_TRUE(std::isfinite(run.losses[0]));
    EXPECT_TRUE(std::isfinite(length(run.centers)));
  }
}

TEST(CpuMarginHead, IsTheSameForAnyNumberOfThreads) {
  for (Head head : {Head::sharded, Head::sampled}) {
    MarginSetup setup{
        .images = 5, .embedding = 32, .classes = 50001, .head = head, .sample_rate = 0.5, .iterations = 3};
    const MarginTensors tensors = random_margin_tensors(setup, 6);
    setup.threads = 1;
    const MarginRun one = run_margin(setup, tensors);
    for (int threads : {2, 3}) {
      setup.threads = threads;
      const MarginRun more = run_margin(setup, tensors);
      EXPECT_EQ(more.losses, one.losses);
      EXPECT_EQ(more.samples, one.samples);
      EXPECT_TRUE(more.centers == one.centers);
      // A sum over all classes, which oneDNN may split across threads.
      expect_near(more.feature_gradient, {one.feature_gradient.begin(), one.feature_gradient.end()}, 1e-5);
    }
  }
}

TEST(CpuMarginHead, HoldsTheLogitsOnce) {
  const MarginSetup setup{.images = 64, .embedding = 4, .classes = 5000};
  const auto device = cpu::make_device({.choice = DeviceChoice::cpu});
  const Graph graph = margin_graph(setup, 0);
  Program program = describe(graph, {}, device->limits());
  device->prepare(graph, setup.rule, program);
  const MemoryBytes bytes = memory_bytes(program, plan_memory(program));
  const std::size_t logits = 64 * 5000 * sizeof(float);
  EXPECT_GE(bytes.activations, logits);
  EXPECT_LT(bytes.activations, logits + logits / 5);
}

TEST(CpuMarginHead, ItsPowersOfTwoAreThoseOfTheLibrary) {
  for (float x = -126; x < 127; x += 0.00197f)
    ASSERT_NEAR(cpu::fast_exp2(x) / std::exp2(static_cast<double>(x)), 1, 2.5e-7) << x;
  EXPECT_EQ(cpu::fast_exp2(0), 1);
  EXPECT_LT(cpu::fast_exp2(-1e30f), 2e-38f);
  EXPECT_TRUE(std::isnan(cpu::fast_exp2(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace plumb
