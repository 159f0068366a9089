// The references themselves: gradients of steps that only references compute, in double precision, are
// central finite differences of the loss; what has no gradient is as worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/program/describe.h"
#include "tests/conformance/hand_made.h"
#include "tests/conformance/instruction_reference.h"
#include "tests/kernels/graph_builder.h"
#include "tests/kernels/margin_graph.h"

namespace plumb {
namespace {

// A step of a CPU's Program, on random tensors that a test may change.
class ReferenceStep {
 public:
  explicit ReferenceStep(const Graph& graph)
      : graph_(graph), program_(describe(graph, {.winograd = Winograd::never}, *find_target("cpu"))) {
    const TestTensors tensors = random_tensors(graph, 1);
    images.assign(tensors.images.begin(), tensors.images.end());
    labels.assign(tensors.labels.begin(), tensors.labels.end());
    for (const auto& values : tensors.parameters) parameters.emplace_back(values.begin(), values.end());
  }

  Doubles images, labels;
  std::vector<Doubles> parameters;

  IterationMetrics run(Phase last = Phase::forward) {
    start();
    InstructionReference reference(graph_, {}, program_, DeviceKind::cpu);
    for (const Instruction& instruction : program_.instructions) {
      if (instruction.phase < Phase::forward || instruction.phase > last) continue;
      // Several passes, because some results are made from others of the same instruction.
      const Operands before = held_;
      for (int pass = 0; pass < 3; ++pass)
        for (auto& [id, expected] : reference.run(instruction, before, held_, {}))
          held_[id] = std::move(expected.values);
    }
    return *reference.metrics();
  }
  const Doubles& value(ValueId id) const { return held_[program_.tensors.values[id]]; }
  const Doubles& statistic(StatisticId id) const { return held_[program_.tensors.statistics[id]]; }
  const Doubles& held(BufferId id) const { return held_[id]; }
  const Program& program() const { return program_; }
  std::vector<Doubles> gradients() {
    run(Phase::backward);
    std::vector<Doubles> gradients;
    for (const ParameterBuffers& one : program_.tensors.parameters) gradients.push_back(held_[one.gradient]);
    return gradients;
  }

 private:
  void start() {
    held_.clear();
    for (const Buffer& buffer : program_.buffers) {
      std::int64_t count = 1;
      for (const std::int64_t dim : buffer.dims) count *= dim;
      held_.emplace_back(static_cast<std::size_t>(count));
    }
    const Tensors& tensors = program_.tensors;
    held_[tensors.values[0]] = images;
    held_[tensors.labels] = labels;
    for (ParameterId p = 0; p < parameters.size(); ++p) {
      held_[tensors.parameters[p].master] = parameters[p];
      for (const BufferId copy : tensors.parameters[p].copies) held_[copy] = parameters[p];
    }
    for (StatisticId s = 0; s < graph_.statistics.size(); ++s)
      held_[tensors.statistics[s]].assign(held_[tensors.statistics[s]].size(), graph_.statistics[s].initial);
  }

  const Graph graph_;
  const Program program_;
  Operands held_;
};

// h = 1e-5: the difference's error is about h^2 * third derivative (1e-10 times values of size 1..100 here)
// plus 1e-16 / h = 1e-11 of rounding. So 1e-7 absolute on gradients of size 0.01..1 is loose enough, and a
// wrong formula misses it by far.
void expect_gradients(const Graph& graph) {
  constexpr double h = 1e-5;
  ReferenceStep step(graph);
  const std::vector<Doubles> gradients = step.gradients();
  for (ParameterId p = 0; p < graph.parameters.size(); ++p) {
    const Doubles& gradient = gradients[p];
    Doubles& values = step.parameters[p];
    ASSERT_EQ(gradient.size(), values.size());
    for (std::size_t i = 0; i < values.size(); i += std::max<std::size_t>(1, values.size() / 12)) {
      const double center = values[i];
      values[i] = center + h;
      const double above = step.run().loss;
      values[i] = center - h;
      const double below = step.run().loss;
      values[i] = center;
      EXPECT_NEAR((above - below) / (2 * h), gradient[i], 1e-7)
          << graph.parameters[p].name << '[' << i << ']';
    }
  }
}

TEST(References, OfConvolutionsGiveTheLossesSlopes) {
  for (const GraphBuilder::ConvOptions& options : {GraphBuilder::ConvOptions{.kernel = 1},
                                                   {.kernel = 3, .padding = 1},
                                                   {.kernel = 7, .padding = 3},
                                                   {.kernel = 3, .stride = 2, .padding = 1},
                                                   {.kernel = 3, .stride = 2},
                                                   {.kernel = 3, .padding = 1, .groups = 2},
                                                   {.kernel = 3, .padding = 1, .groups = 6}}) {
    GraphBuilder b({2, 7, 8, 3});
    expect_gradients(b.classify(b.conv(b.conv(GraphBuilder::kImages, 6, {}), 12, options)));
  }
}

TEST(References, OfNormsGiveTheLossesSlopes) {
  for (const bool slope_per_channel : {true, false}) {
    GraphBuilder b({2, 5, 5, 3});
    const ValueId in = b.norm(b.conv(GraphBuilder::kImages, 4, {}), Activation::relu);
    const ValueId main =
        b.norm_prelu(b.conv(in, 6, {.kernel = 3, .stride = 2, .padding = 1}), slope_per_channel);
    const ValueId projected = b.norm(b.conv(in, 6, {.stride = 2}));
    const ValueId first = b.norm(b.conv(main, 6, {}), Activation::relu, projected);
    const ValueId second = b.norm(b.conv(first, 6, {.kernel = 3, .padding = 1}), Activation::relu, first);
    expect_gradients(b.classify(b.norm(b.conv(second, 6, {}), Activation::none, second)));
  }
}

TEST(References, OfOtherLayersGiveTheLossesSlopes) {
  for (const double smoothing : {0.0, 0.1, 1.0}) {
    GraphBuilder b({2, 7, 7, 3});
    const ValueId pooled = b.max_pool(b.conv(GraphBuilder::kImages, 4, {}), 3, 2, 1);
    expect_gradients(b.loss(b.dense(b.dropout(pooled, 0.4), 11), smoothing));
    GraphBuilder average({2, 3, 3, 3});
    expect_gradients(average.loss(
        average.dense(average.global_average(average.conv(GraphBuilder::kImages, 4, {})), 5), smoothing));
  }
}

// Mean 5, squared distances 9 + 1 + 1 + 9: biased variance 5, unbiased 20 / 3.
TEST(References, OfRunningStatisticsTakeTheUnbiasedVariance) {
  GraphBuilder b({2, 1, 2, 1});
  ReferenceStep step(b.loss(b.dense(b.norm(GraphBuilder::kImages), 2)));
  step.images = {2, 4, 6, 8};
  step.run();
  EXPECT_DOUBLE_EQ(step.statistic(0)[0], 0.5);
  EXPECT_DOUBLE_EQ(step.statistic(1)[0], 0.9 + 0.1 * 20 / 3);
}

TEST(References, OfMaxPoolsNeverTakeThePadding) {
  GraphBuilder b({1, 2, 2, 1});
  const ValueId pooled = b.max_pool(GraphBuilder::kImages, 3, 2, 1);
  ReferenceStep step(b.loss(b.dense(pooled, 2)));
  step.images = {-4, -3, -2, -1};
  step.run();
  EXPECT_EQ(step.value(pooled), Doubles{-1});
}

// Logits fall from class 0 to class 5.
TEST(References, OfLossesCountTop1AndTop5) {
  GraphBuilder b({3, 1, 1, 1});
  ReferenceStep step(b.loss(b.dense(GraphBuilder::kImages, 6)));
  step.images = {1, 1, 1};
  step.labels = {0, 4, 5};
  step.parameters = {{6, 5, 4, 3, 2, 1}, Doubles(6)};
  const IterationMetrics metrics = step.run();
  EXPECT_EQ(metrics.top1, 1);
  EXPECT_EQ(metrics.top5, 2);
}

double length(const Doubles& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

// Computed independently in NumPy, and confirmed by finite differences to 2e-8.
TEST(References, OfMarginsGiveThePublishedLossesAndGradients) {
  struct Row {
    Margins margins;
    MarginLoss::Gradient gradient;
    double loss, feature_gradient_length, center_gradient_length, first_feature_gradient;
  };
  using enum MarginLoss::Gradient;
  for (const Row& row :
       {Row{{1, 0.5, 0}, exact, 78.064953766, 12.079427909, 13.048544518, -4.640843159},
        {{1, 0.5, 0}, straight_through, 78.064953766, 13.337096881, 15.055791552, -2.034191996},
        {{1, 0, 0.4}, exact, 81.778523418, 13.337096944, 15.055791607, -2.034192128},
        {{1, 0.3, 0.2}, exact, 82.315179903, 12.642724591, 13.878842244, -3.702271119}})
    for (const Head head : {Head::replicated, Head::sharded, Head::sampled}) {
      ReferenceStep step(margin_graph(4, 8, 10, {.margins = row.margins, .gradient = row.gradient}, head));
      step.labels = {3, 7, 0, 9};
      for (std::size_t i = 0; i < 32; ++i) step.images[i] = std::sin(0.37 * static_cast<double>(i) + 0.11);
      for (std::size_t i = 0; i < 80; ++i)
        step.parameters[0][i] = std::cos(0.23 * static_cast<double>(i) + 0.05);
      EXPECT_NEAR(step.run(Phase::backward).loss, row.loss, 1e-6);
      for (const Instruction& instruction : step.program().instructions) {
        if (const auto* features = instruction.as<MarginFeaturesBackward>()) {
          EXPECT_NEAR(length(step.held(features->d_features)), row.feature_gradient_length, 1e-6);
          EXPECT_NEAR(step.held(features->d_features)[0], row.first_feature_gradient, 1e-6);
        }
        if (const auto* centers = instruction.as<MarginWeightGradient>()) {
          EXPECT_NEAR(length(step.held(centers->d_rows)), row.center_gradient_length, 1e-6);
        }
      }
    }
}

// One weight w = 1, gradient 2 in both steps, momentum 0.5, decay 0.1, lr 0.01. Step 0: g' = 2.1, v = 2.1.
// sgd: w = 0.979; g' = 2.0979, v = 3.1479, w = 0.947521. nag: d = 2.1 + 1.05 = 3.15, w = 0.9685; g' =
// 2.09685, v = 3.14685, d = 3.670275, w = 0.93179725. Without decay and momentum: w = 0.98, 0.96.
TEST(References, OfUpdatesFollowSgdAndNag) {
  struct Case {
    UpdateRule rule;
    bool decays;
    double weight;
  };
  for (const Case& one : {Case{{Optimizer::sgd, 0.5, 0.1}, true, 0.947521},
                          {{Optimizer::nag, 0.5, 0.1}, true, 0.93179725},
                          {{Optimizer::sgd, 0.0, 0.1}, false, 0.96}}) {
    HandMade made;
    made.graph.parameters = {{.name = "w", .dims = {1}, .decays = one.decays}};
    const UpdatedParameter w{.parameter = 0,
                             .master = made.add(DType::f32, {1}),
                             .momentum = made.add(DType::f32, {1}),
                             .gradient = made.add(DType::f32, {1}),
                             .copies = {}};
    const Instruction update{.operation = Update{.state = made.state(), .overflow = {}, .parameters = {w}}};
    Operands held(made.program.buffers.size());
    held[w.master.buffer] = {1}, held[w.momentum.buffer] = {0}, held[w.gradient.buffer] = {2};
    InstructionReference reference(made.graph, one.rule, made.program, DeviceKind::cpu);
    for (int step = 0; step < 2; ++step) {
      const Operands before = held;
      for (auto& [id, expected] : reference.run(update, before, held, {.learning_rate = 0.01F}))
        held[id] = std::move(expected.values);
    }
    EXPECT_NEAR(held[w.master.buffer][0], one.weight, 1e-7);
  }
}

}  // namespace
}  // namespace plumb
