// The reference interpreter itself: its gradients must agree with central finite differences of the loss;
// everything without a gradient (running statistics, updates) is compared with values worked out by hand.
#include "tests/kernels/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/graph_builder.h"
#include "tests/kernels/tensors.h"

namespace plumb {
namespace {

// Compares d loss / d x with (loss(x + h) - loss(x - h)) / 2h for at most 40 elements spread over `variable`.
// h = 1e-5: the difference's error is about h^2 * third derivative (1e-10 times values of size 1..100 here)
// plus 1e-16 / h = 1e-11 of rounding. So 1e-7 absolute on gradients of size 0.01..1 is loose enough, and a
// wrong formula misses it by far.
template <typename Loss>
void expect_gradient(Doubles& variable, const Doubles& gradient, Loss loss, const std::string& name) {
  constexpr double h = 1e-5;
  ASSERT_EQ(variable.size(), gradient.size()) << name;
  const std::size_t stride = std::max<std::size_t>(1, variable.size() / 40);
  for (std::size_t i = 0; i < variable.size(); i += stride) {
    const double center = variable[i];
    variable[i] = center + h;
    const double above = loss();
    variable[i] = center - h;
    const double below = loss();
    variable[i] = center;
    EXPECT_NEAR((above - below) / (2 * h), gradient[i], 1e-7) << name << '[' << i << ']';
  }
}

void expect_gradients_match_finite_differences(const Graph& graph, std::uint32_t seed = 1) {
  const TestTensors tensors = random_tensors(graph, seed);
  ReferenceState state = reference_state(tensors);
  Doubles images = to_double(tensors.images);
  const auto loss = [&] { return reference_pass(graph, state, images, tensors.labels).loss; };
  const ReferencePass pass = reference_pass(graph, state, images, tensors.labels);
  expect_gradient(images, pass.value_gradients[0], loss, "images");
  for (std::size_t p = 0; p < graph.parameters.size(); ++p)
    expect_gradient(state.parameters[p], pass.parameter_gradients[p], loss, graph.parameters[p].name);
}

TEST(Reference, ConvolutionsOfKernels1And3And7MatchFiniteDifferences) {
  for (int kernel : {1, 3, 7}) {
    GraphBuilder b({2, 7, 7, 3});
    expect_gradients_match_finite_differences(
        b.classify(b.conv(GraphBuilder::kImages, 5, {.kernel = kernel, .padding = kernel / 2})));
  }
}

TEST(Reference, StridedConvolutionOfAnOddOblongImageMatchesFiniteDifferences) {
  GraphBuilder b({1, 5, 6, 3});  // both sides become 3
  expect_gradients_match_finite_differences(
      b.classify(b.conv(GraphBuilder::kImages, 4, {.kernel = 3, .stride = 2, .padding = 1})));
}

TEST(Reference, UnpaddedStridedConvolutionMatchesFiniteDifferences) {
  GraphBuilder b({2, 8, 8, 2});  // the last column is never read
  expect_gradients_match_finite_differences(
      b.classify(b.conv(GraphBuilder::kImages, 3, {.kernel = 3, .stride = 2})));
}

TEST(Reference, GroupedAndDepthwiseConvolutionsMatchFiniteDifferences) {
  for (int groups : {2, 6}) {
    GraphBuilder b({2, 5, 5, 6});
    expect_gradients_match_finite_differences(
        b.classify(b.conv(GraphBuilder::kImages, 12, {.kernel = 3, .padding = 1, .groups = groups})));
  }
}

TEST(Reference, NormMatchesFiniteDifferences) {
  GraphBuilder b({3, 3, 3, 4});
  const ValueId normed = b.norm(b.conv(GraphBuilder::kImages, 5, {.kernel = 3, .padding = 1}));
  expect_gradients_match_finite_differences(b.classify(b.conv(normed, 6, {.kernel = 3})));
}

TEST(Reference, NormWithReluMatchesFiniteDifferences) {
  GraphBuilder b({2, 5, 5, 3});
  expect_gradients_match_finite_differences(
      b.classify(b.norm(b.conv(GraphBuilder::kImages, 5, {.kernel = 3, .padding = 1}), Activation::relu)));
}

TEST(Reference, NormWithPreluMatchesFiniteDifferences) {
  for (bool per_channel : {true, false}) {
    GraphBuilder b({2, 5, 5, 3});
    const ValueId in = b.conv(GraphBuilder::kImages, 5, {.kernel = 3, .padding = 1});
    expect_gradients_match_finite_differences(b.classify(b.norm_prelu(in, per_channel)));
  }
}

TEST(Reference, DenseOfImagesWithPixelsMatchesFiniteDifferences) {
  GraphBuilder b({2, 3, 2, 3});
  expect_gradients_match_finite_differences(b.loss(b.dense(b.conv(GraphBuilder::kImages, 4, {}), 5)));
}

TEST(Reference, DropoutMatchesFiniteDifferences) {
  GraphBuilder b({2, 3, 3, 3});
  expect_gradients_match_finite_differences(
      b.loss(b.dense(b.dropout(b.conv(GraphBuilder::kImages, 5, {}), 0.4), 5)));
}

TEST(Reference, NormOfOneElementPerChannelIsItsBiasAndPassesNoGradient) {
  GraphBuilder b({1, 1, 1, 4});
  const Graph graph = b.classify(b.norm(b.conv(GraphBuilder::kImages, 3, {})));
  expect_gradients_match_finite_differences(graph);
  const TestTensors tensors = random_tensors(graph, 1);
  const ReferencePass pass =
      reference_pass(graph, reference_state(tensors), to_double(tensors.images), tensors.labels);
  const BatchNorm& norm = std::get<BatchNorm>(graph.ops[1]);
  EXPECT_EQ(pass.values[norm.out], to_double(tensors.parameters[norm.bias]));
  EXPECT_EQ(pass.value_gradients[norm.in], Doubles(3, 0.0));
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_DOUBLE_EQ(pass.statistics[norm.running_mean][c], 0.1 * pass.values[norm.in][c]);
    EXPECT_DOUBLE_EQ(pass.statistics[norm.running_variance][c], 0.9);
  }
}

TEST(Reference, RunningStatisticsTakeTheUnbiasedVariance) {
  GraphBuilder b({2, 1, 2, 1});
  Graph graph = b.loss(b.dense(b.conv(b.norm(GraphBuilder::kImages), 2, {.kernel = 1, .stride = 2}), 2));
  const TestTensors tensors = random_tensors(graph, 1);
  // Mean 5, squared distances 9 + 1 + 1 + 9: biased variance 5, unbiased 20 / 3.
  const ReferencePass pass =
      reference_pass(graph, reference_state(tensors), Doubles{2, 4, 6, 8}, tensors.labels);
  EXPECT_DOUBLE_EQ(pass.statistics[0][0], 0.5);
  EXPECT_DOUBLE_EQ(pass.statistics[1][0], 0.9 + 0.1 * 20 / 3);
}

TEST(Reference, MaxPoolMatchesFiniteDifferences) {
  GraphBuilder b({2, 7, 7, 3});
  const ValueId pooled = b.max_pool(b.conv(GraphBuilder::kImages, 4, {}), 3, 2, 1);
  expect_gradients_match_finite_differences(b.classify(pooled));
}

TEST(Reference, MaxPoolPaddingNeverWins) {
  GraphBuilder b({1, 2, 2, 1});
  const ValueId pooled = b.max_pool(GraphBuilder::kImages, 3, 2, 1);
  Graph graph = b.loss(b.dense(pooled, 2));
  const TestTensors tensors = random_tensors(graph, 1);
  const ReferencePass pass =
      reference_pass(graph, reference_state(tensors), Doubles{-4, -3, -2, -1}, tensors.labels);
  EXPECT_EQ(pass.values[pooled], Doubles{-1});
}

TEST(Reference, BottleneckWithProjectionAndIdentityMatchesFiniteDifferences) {
  GraphBuilder b({2, 5, 5, 3});
  const ValueId in = b.norm(b.conv(GraphBuilder::kImages, 4, {}), Activation::relu);
  const ValueId main = b.norm(b.conv(in, 6, {.kernel = 3, .stride = 2, .padding = 1}));
  const ValueId projected = b.norm(b.conv(in, 6, {.stride = 2}));
  const ValueId first = b.norm(b.conv(main, 6, {}), Activation::relu, projected);
  const ValueId second = b.norm(b.conv(first, 6, {.kernel = 3, .padding = 1}), Activation::relu, first);
  const ValueId third = b.norm(b.conv(second, 6, {}), Activation::none, second);
  expect_gradients_match_finite_differences(b.classify(third));
}

TEST(Reference, LossWithoutAndWithSmoothingMatchesFiniteDifferences) {
  for (double smoothing : {0.0, 0.1, 1.0}) {
    GraphBuilder b({3, 1, 1, 5});
    expect_gradients_match_finite_differences(b.loss(b.dense(GraphBuilder::kImages, 11), smoothing));
  }
}

TEST(Reference, LossOfEqualLogitsIsTheLogarithmOfTheClasses) {
  GraphBuilder b({2, 1, 1, 3});
  const Graph graph = b.loss(b.dense(GraphBuilder::kImages, 8));
  TestTensors tensors = random_tensors(graph, 1);
  tensors.parameters[0].assign(tensors.parameters[0].size(), 0.0f);
  tensors.parameters[1].assign(8, 3.0f);
  const ReferencePass pass =
      reference_pass(graph, reference_state(tensors), to_double(tensors.images), tensors.labels);
  EXPECT_NEAR(pass.loss, std::log(8.0), 1e-14);
}

TEST(Reference, CountsTop1AndTop5) {
  GraphBuilder b({3, 1, 1, 1});
  const Graph graph = b.loss(b.dense(GraphBuilder::kImages, 6));
  TestTensors tensors = random_tensors(graph, 1);
  tensors.parameters[0] = {6, 5, 4, 3, 2, 1};  // logits fall from class 0 to class 5
  tensors.parameters[1].assign(6, 0.0f);
  tensors.labels = {0, 4, 5};
  const ReferencePass pass =
      reference_pass(graph, reference_state(tensors), Doubles{1, 1, 1}, tensors.labels);
  EXPECT_EQ(pass.top1, 1);
  EXPECT_EQ(pass.top5, 2);
}

// One weight w = 1, gradient 2 in both steps, momentum 0.5, decay 0.1, lr 0.01. Step 0: g' = 2.1, v = 2.1.
// sgd: w = 0.979; g' = 2.0979, v = 3.1479, w = 0.947521. nag: d = 2.1 + 1.05 = 3.15, w = 0.9685; g' =
// 2.09685, v = 3.14685, d = 3.670275, w = 0.93179725.
TEST(Reference, UpdatesFollowSgdAndNag) {
  Graph graph;
  graph.parameters.push_back({"w", {1}, {}, true});
  const std::vector<Doubles> gradient{{2.0}};
  const auto after_two_steps = [&](Optimizer optimizer) {
    ReferenceState state{{{1.0}}, {{0.0}}, {}};
    const UpdateRule rule{optimizer, 0.5, 0.1};
    for (int i = 0; i < 2; ++i) reference_update(graph, rule, 0.01, 1, gradient, state);
    return state.parameters[0][0];
  };
  EXPECT_NEAR(after_two_steps(Optimizer::sgd), 0.947521, 1e-12);
  EXPECT_NEAR(after_two_steps(Optimizer::nag), 0.93179725, 1e-12);
}

// MXNet's own form of NAG, u = momentum * u - lr * g', w += momentum * u - lr * g', gives the same weights.
TEST(Reference, NagIsMxnetsForAConstantLearningRate) {
  Graph graph;
  graph.parameters.push_back({"w", {1}, {}, true});
  ReferenceState state{{{1.0}}, {{0.0}}, {}};
  const UpdateRule rule{Optimizer::nag, 0.875, 0.01};
  double w = 1, u = 0;
  for (int i = 0; i < 5; ++i) {
    const double gradient = std::sin(i + 1.0);
    reference_update(graph, rule, 0.1, 1, {{gradient}}, state);
    const double g = gradient + 0.01 * w;
    u = 0.875 * u - 0.1 * g;
    w += 0.875 * u - 0.1 * g;
    EXPECT_NEAR(state.parameters[0][0], w, 1e-14);
  }
}

TEST(Reference, ParametersWithoutDecayIgnoreIt) {
  Graph graph;
  graph.parameters.push_back({"w", {1}, {}, false});
  ReferenceState state{{{1.0}}, {{0.0}}, {}};
  reference_update(graph, {Optimizer::sgd, 0.9, 0.5}, 0.1, 0.5, {{1.0}}, state);
  EXPECT_DOUBLE_EQ(state.parameters[0][0], 0.95);
}

}  // namespace
}  // namespace plumb
