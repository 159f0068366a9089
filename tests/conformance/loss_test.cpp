// Softmax losses of chosen logits.
#include <cmath>
#include <limits>

#include "tests/conformance/device_under_test.h"
#include "tests/conformance/hand_made.h"

namespace plumb {
namespace {

class SoftmaxLosses : public Conformance {
 protected:
  struct Case {
    std::int64_t rows = 1, classes = 1;
    double smoothing = 0;
    float loss_scale = 1;
    std::uint64_t iteration = 0;
  };

  // The loss by itself, over f32 logits; gradients in every dtype.
  static void for_each_dtype(const Case& by, const Doubles& logits, const Doubles& labels,
                             const std::function<void(CheckedProgram&, BufferId)>& check) {
    for (const DType dtype : storages()) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << by.rows << " x " << by.classes);
      Graph graph;
      graph.values = {{"images", {by.rows, 1, 1, 3}}, {"logits", {by.rows, 1, 1, by.classes}}};
      graph.ops = {SoftmaxLoss{.name = "loss", .in = 1, .label_smoothing = by.smoothing}};
      HandMade made(std::move(graph));
      const BufferId in = made.add(DType::f32, {by.rows, by.classes}),
                     d_logits = made.add(dtype, {by.rows, by.classes});
      made.program.tensors.values[1] = in;
      made.add(SoftmaxCrossEntropy{
          .logits = in, .labels = made.program.tensors.labels, .d_logits = d_logits, .state = made.state()});
      made.program.instructions[0].workspace_bytes = 16 * static_cast<std::size_t>(by.rows);
      CheckedProgram program(*device(), made.graph, made.rule, made.program);
      program.write(in, logits);
      program.write(made.program.tensors.labels, labels);
      program.write(StepState{.iteration = by.iteration, .loss_scale = on_gpu() ? by.loss_scale : 1});
      check(program, d_logits);
    }
  }
  static void expect_conforms(const Case& by, const Doubles& logits, const Doubles& labels) {
    for_each_dtype(by, logits, labels, [](CheckedProgram& program, BufferId) { program.check_step(); });
  }
};

// Fewer classes than a warp, than a block, more; more rows than a block has threads; more blocks than run at
// once.
TEST_F(SoftmaxLosses, OfAnySizeAndSmoothing) {
  for (const Case& by : {Case{1, 1},
                         {3, 7, 0.1},
                         {5, 257, 0.1, 1024, 7},
                         {2, 1000, 0, 65536, kMetricsKept + 3},
                         {300, 10, 0.1, 3},
                         {under_test().is_fast ? 4000 : 400, 33, 1}}) {
    Doubles labels;
    for (std::int64_t row = 0; row < by.rows; ++row)
      labels.push_back(static_cast<double>(row * 7919 % by.classes));
    expect_conforms(by, normal_values(DType::f32, static_cast<std::size_t>(by.rows * by.classes), 1), labels);
  }
}

// exp(300) overflows fp32: the largest logit is subtracted first.
TEST_F(SoftmaxLosses, OfLargeLogits) {
  expect_conforms({2, 6, 0.1}, {300, -300, 299, 0, 150, -20, 0, 1, 2, 3, 4, 5}, {2, 0});
  expect_conforms({2, 3}, {1e4, -1e4, 0, 2, 2, 2}, {1, 1});
}

// One class more or fewer has a larger logit; and where all are the same none is larger.
TEST_F(SoftmaxLosses, CountLabelsAmongTheLargest) {
  Doubles logits;
  for (int row = 0; row < 4; ++row)
    for (const double logit : {5, 4, 3, 2, 1, 0, -1, -1}) logits.push_back(logit);
  for (const Doubles& labels : {Doubles{0, 0, 0, 0}, {0, 1, 4, 5}, {5, 6, 7, 5}}) {
    expect_conforms({4, 8}, logits, labels);
    expect_conforms({4, 8}, Doubles(32, 1.0), labels);
  }
}

TEST_F(SoftmaxLosses, OfWhatIsNotFiniteAreNoNumbers) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
    for (const std::size_t place : {0, 1, 299}) {
      Doubles logits = normal_values(DType::f32, 900, 2);
      logits[300 + place] = bad;
      for_each_dtype({3, 300}, logits, {5, 6, 7}, [](CheckedProgram& program, BufferId d_logits) {
        program.run(0);
        EXPECT_TRUE(std::isnan(program.device().metrics(0).loss));
        const Doubles& gradient = program.held(d_logits);
        EXPECT_TRUE(std::isnan(gradient[300]));
        EXPECT_FALSE(std::isnan(gradient[0]) || std::isnan(gradient[600])) << "another row";
      });
    }
}

}  // namespace
}  // namespace plumb
