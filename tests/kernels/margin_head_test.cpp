// The margin loss on one CPU device, of features that are the images.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/fast_exp2.h"
#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "tests/kernels/margin_graph.h"
#include "tests/kernels/run_graph.h"

namespace plumb {
namespace {

constexpr Head kHeads[] = {Head::replicated, Head::sharded, Head::sampled};

TEST(CpuMarginHead, CountsImagesWhoseTargetIsLargestInSpiteOfItsMargin) {
  const Graph graph = margin_graph(3, 2, 2);
  // Angles to the own center: 0, 40 and 80 degrees; to the other: 90, 50 and 10. The margin is 28.6 degrees.
  TestTensors tensors{.parameters = {{1, 0, 0, 1}}, .statistics = {}, .images = {}, .labels = {0, 0, 0}};
  for (double degrees : {0.0, 40.0, 80.0}) {
    const double angle = degrees * std::acos(-1.0) / 180;
    tensors.images.insert(tensors.images.end(),
                          {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
  }
  EXPECT_EQ(run_on_cpu(graph, tensors, {}).metrics[0].top1, 1);
}

// Loss, and the length of all class centers' gradients together: computed in NumPy, and confirmed by finite
// differences to 2e-8. An update by the gradient alone subtracts it.
TEST(CpuMarginHead, HasThePublishedLossesAndGradients) {
  using enum MarginLoss::Gradient;
  struct Row {
    Margins margins;
    MarginLoss::Gradient gradient;
    double loss, center_gradient_length;
  };
  for (const Row& row : {Row{{1, 0.5, 0}, exact, 78.064953766, 13.048544518},
                         {{1, 0.5, 0}, straight_through, 78.064953766, 15.055791552},
                         {{1, 0, 0.4}, exact, 81.778523418, 15.055791607},
                         {{1, 0.3, 0.2}, exact, 82.315179903, 13.878842244}})
    for (const Head head : kHeads) {
      const Graph graph = margin_graph(4, 8, 10, {.margins = row.margins, .gradient = row.gradient}, head);
      TestTensors tensors{.parameters = {{}}, .statistics = {}, .images = {}, .labels = {3, 7, 0, 9}};
      for (int i = 0; i < 32; ++i) tensors.images.push_back(static_cast<float>(std::sin(0.37 * i + 0.11)));
      for (int i = 0; i < 80; ++i)
        tensors.parameters[0].push_back(static_cast<float>(std::cos(0.23 * i + 0.05)));
      const GraphRun run =
          run_on_cpu(graph, tensors, {.rule = {.momentum = 0, .weight_decay = 0}, .learning_rate = 1});
      EXPECT_NEAR(run.losses[0], row.loss, 1e-5 * row.loss);
      double squares = 0;
      for (std::size_t i = 0; i < 80; ++i)
        squares += std::pow(double{tensors.parameters[0][i]} - run.parameters[0][i], 2);
      EXPECT_NEAR(std::sqrt(squares), row.center_gradient_length, 1e-5 * row.center_gradient_length);
    }
}

TEST(CpuMarginHead, FeaturesOfAnySizeHaveTheSameLoss) {
  const Graph graph = margin_graph(3, 16, 12);
  const TestTensors tensors = random_tensors(graph, 3);
  const double loss = run_on_cpu(graph, tensors, {}).losses[0];
  for (float size : {1e-9f, 1e9f, 1e37f}) {
    TestTensors sized = tensors;
    for (float& feature : sized.images) feature *= size;
    EXPECT_NEAR(run_on_cpu(graph, sized, {}).losses[0], loss, 1e-4) << size;
  }
}

TEST(CpuMarginHead, LabelsThatNoRankHasTouchNothingElse) {
  for (Head head : kHeads) {
    const Graph graph = margin_graph(4, 8, 10, {}, head, 0.5);
    TestTensors tensors = random_tensors(graph, 5);
    tensors.labels = {-1, 10, std::numeric_limits<std::int32_t>::max(),
                      std::numeric_limits<std::int32_t>::min()};
    const GraphRun run = run_on_cpu(graph, tensors, {});
    EXPECT_TRUE(std::isfinite(run.losses[0]));
    EXPECT_TRUE(std::isfinite(std::accumulate(run.parameters[0].begin(), run.parameters[0].end(), 0.0)));
  }
}

TEST(CpuMarginHead, IsTheSameForAnyNumberOfThreads) {
  for (Head head : {Head::sharded, Head::sampled}) {
    const Graph graph = margin_graph(5, 32, 50001, {}, head, 0.5);
    const TestTensors tensors = random_tensors(graph, 6);
    const GraphRun one = run_on_cpu(graph, tensors, {.iterations = 3, .threads = 1});
    for (int threads : {2, 3}) {
      const GraphRun more = run_on_cpu(graph, tensors, {.iterations = 3, .threads = threads});
      EXPECT_EQ(more.losses, one.losses);
      EXPECT_TRUE(more.parameters == one.parameters);
    }
  }
}

TEST(CpuMarginHead, HoldsTheLogitsOnce) {
  const auto device = cpu::make_device({.choice = DeviceChoice::cpu});
  const Graph graph = margin_graph(64, 4, 5000);
  Program program = describe(graph, {}, device->limits());
  device->prepare(graph, {}, program);
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
