// Steps as a Program has them, through their prepare functions: which use is which operand, and what of the
// graph, the rule and the state reaches the kernels.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/softmax_loss.h"
#include "tests/cuda_host/bound_step.h"

namespace plumb::cuda {
namespace {

using Values = std::vector<double>;

Values floats(std::size_t count, std::uint64_t seed) {
  return normal_values(DType::f32, count, seed);
}

// c[rows, columns] = sum over k of a(row, k) * b(k, column).
template <typename A, typename B>
Values product(std::size_t rows, std::size_t columns, std::size_t inner, const A& a, const B& b) {
  Values c(rows * columns, 0.0);
  for (std::size_t i = 0; i < c.size(); ++i)
    for (std::size_t k = 0; k < inner; ++k) c[i] += a(i / columns, k) * b(k, i % columns);
  return c;
}

constexpr std::size_t kRows = 5, kIn = 12, kOut = 7;
constexpr std::int64_t kGemmLimit = 1 << 20;

Graph dense_graph() {
  Graph graph;
  graph.values = {{"in", {.n = kRows, .c = kIn}}, {"out", {.n = kRows, .c = kOut}}};
  graph.ops = {Dense{.name = "fc", .in = 0, .out = 1}};
  return graph;
}

void expect_forward(DType dtype, DType out_dtype) {
  const Values in = normal_values(dtype, kRows * kIn, 1), weight = normal_values(dtype, kOut * kIn, 2);
  const Values bias = floats(kOut, 3);
  BoundStep bound(StepKind::dense_forward, dense_graph());
  bound.step.workspace_bytes = kGemmLimit;
  bound.read(dtype, in);
  bound.read(dtype, weight);
  bound.read(DType::f32, bias);
  const BufferId out = bound.write(out_dtype, kRows * kOut);
  bound.run(prepare_dense);
  Values wanted = product(
      kRows, kOut, kIn, [&](std::size_t n, std::size_t k) { return in[n * kIn + k]; },
      [&](std::size_t k, std::size_t o) { return weight[o * kIn + k]; });
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += bias[i % kOut];
  expect_close(bound.values(out), wanted, out_dtype, 16, 4);
  const std::size_t rounded_bias = out_dtype == DType::f32 ? 0 : 256;
  EXPECT_EQ(bound.step.workspace_bytes, rounded_bias) << "and the plan's, not the limit";
}

TEST(DenseSteps, ForwardAddsTheBiasAndGivesF32) {
  for (DType dtype : kStorageTypes) expect_forward(dtype, DType::f32);
}

TEST(DenseSteps, ForwardToAHalfTypeTakesItsBiasInThatTypeToo) {
  for (DType dtype : {DType::f16, DType::bf16}) expect_forward(dtype, dtype);
}

TEST(DenseSteps, BackwardGivesTheGradientsOfInputWeightAndBias) {
  for (DType dtype : kStorageTypes) {
    const Values in = normal_values(dtype, kRows * kIn, 1), weight = normal_values(dtype, kOut * kIn, 2);
    const Values d_out = normal_values(dtype, kRows * kOut, 3);
    BoundStep data(StepKind::dense_backward_data, dense_graph());
    data.read(dtype, d_out);
    data.read(dtype, weight);
    const BufferId d_in = data.write(dtype, kRows * kIn);
    data.run(prepare_dense);
    expect_close(data.values(d_in),
                 product(
                     kRows, kIn, kOut, [&](std::size_t n, std::size_t o) { return d_out[n * kOut + o]; },
                     [&](std::size_t o, std::size_t k) { return weight[o * kIn + k]; }),
                 dtype, 16);

    BoundStep weights(StepKind::dense_backward_weights, dense_graph());
    weights.read(dtype, in);
    weights.read(dtype, d_out);
    const BufferId d_weight = weights.write(dtype, kOut * kIn), d_bias = weights.write(DType::f32, kOut);
    weights.run(prepare_dense);
    expect_close(weights.values(d_weight),
                 product(
                     kOut, kIn, kRows, [&](std::size_t o, std::size_t n) { return d_out[n * kOut + o]; },
                     [&](std::size_t n, std::size_t k) { return in[n * kIn + k]; }),
                 dtype, 16);
    Values sums(kOut, 0.0);
    for (std::size_t i = 0; i < d_out.size(); ++i) sums[i % kOut] += d_out[i];
    expect_close(weights.values(d_bias), sums, DType::f32, 8);
  }
}

TEST(PoolSteps, MaxKeepsWhereItCameFrom) {
  Graph graph;
  graph.values = {{"in", {.n = 1, .h = 4, .w = 4, .c = 1}}, {"out", {.n = 1, .h = 2, .w = 2, .c = 1}}};
  graph.ops = {Pool{.name = "pool", .in = 0, .out = 1, .kernel = 2, .stride = 2}};
  BoundStep forward(StepKind::pool_forward, graph);
  forward.read(DType::f16, {1, 9, 2, 3, 4, 5, 8, 6, 7, 0, 1, 1, 2, 3, 1, 4});
  const BufferId out = forward.write(DType::f16, 4), argmax = forward.write(DType::u8, 4);
  forward.run(prepare_pool);
  EXPECT_EQ(forward.values(out), (Values{9, 8, 7, 4}));
  EXPECT_EQ(forward.values(argmax), (Values{1, 2, 0, 3}));

  BoundStep backward(StepKind::pool_backward, graph);
  backward.read(DType::f16, {1, 2, 3, 4});
  const BufferId d_in = backward.write(DType::f16, 16);
  backward.read(DType::u8, forward.values(argmax));
  backward.run(prepare_pool);
  EXPECT_EQ(backward.values(d_in), (Values{0, 1, 0, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 4}));
  backward.read(DType::f16, {10, 20, 30, 40});
  backward.run(prepare_pool);
  EXPECT_EQ(backward.values(d_in), (Values{0, 11, 0, 0, 0, 0, 22, 0, 33, 0, 0, 0, 0, 0, 0, 44}));
}

TEST(PoolSteps, MaxNormalisesByFactors) {
  Graph graph;
  graph.values = {{"in", {.n = 1, .h = 2, .w = 2, .c = 2}}, {"out", {.n = 1, .c = 2}}};
  graph.ops = {Pool{.name = "pool", .in = 0, .out = 1, .kernel = 2, .stride = 2}};
  BoundStep forward(StepKind::pool_forward, graph);
  forward.read(DType::f16, {1, 1, 4, 4, 3, 3, 2, 2});
  const BufferId out = forward.write(DType::f16, 2), argmax = forward.write(DType::u8, 2);
  forward.read(DType::f32, {-1, 2, 3, 1});
  forward.run(prepare_pool);
  EXPECT_EQ(forward.values(out), (Values{2, 9}));
  EXPECT_EQ(forward.values(argmax), (Values{0, 1}));
}

TEST(PoolSteps, AverageIsGlobal) {
  Graph graph;
  graph.values = {{"in", {.n = 1, .h = 2, .w = 2, .c = 2}}, {"out", {.n = 1, .c = 2}}};
  graph.ops = {Pool{.name = "pool", .in = 0, .out = 1, .kind = Pool::Kind::global_average, .kernel = 2}};
  BoundStep forward(StepKind::pool_forward, graph);
  forward.read(DType::f32, {1, 10, 2, 20, 3, 30, 4, 40});
  const BufferId out = forward.write(DType::f32, 2);
  forward.run(prepare_pool);
  EXPECT_EQ(forward.values(out), (Values{2.5, 25}));
  BoundStep backward(StepKind::pool_backward, graph);
  backward.read(DType::f32, {4, 8});
  const BufferId d_in = backward.write(DType::f32, 8);
  backward.run(prepare_pool);
  EXPECT_EQ(backward.values(d_in), (Values{1, 2, 1, 2, 1, 2, 1, 2}));
}

TEST(LossStep, TakesSmoothingFromTheGraphAndScaleFromTheState) {
  Graph graph;
  graph.values = {{"logits", {.n = 2, .c = 4}}};
  graph.ops = {SoftmaxLoss{.name = "loss", .in = 0, .label_smoothing = 0.2}};
  BoundStep bound(StepKind::softmax_loss, graph);
  bound.read(DType::f32, Values(8, 1.0));
  bound.read(DType::i32, {0, 3});
  const BufferId d_logits = bound.write(DType::f16, 8);
  bound.use_object(State{.step = {.iteration = 5, .loss_scale = 16}}, Role::state, Access::read_write);
  bound.run(prepare_softmax_loss);
  EXPECT_EQ(bound.step.workspace_bytes, 2 * sizeof(RowLoss));
  EXPECT_NEAR(bound.records[5].loss, std::log(4.0), 1e-6);
  EXPECT_EQ(bound.records[5].top1, 2);
  // (1/4 - q) / 2 images * 16, with q = 0.8 + 0.05 at the label and 0.05 elsewhere
  expect_close(bound.values(d_logits), {-4.8, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, -4.8}, DType::f16, 2);
}

TEST(ElementwiseSteps, CastTakesTheStepsScale) {
  BoundStep cast(StepKind::cast, {});
  cast.step.scale = 0.125;
  cast.read(DType::f32, {8, -16, 1});
  const BufferId into = cast.write(DType::bf16, 3);
  cast.run(prepare_elementwise);
  EXPECT_EQ(cast.values(into), (Values{1, -2, 0.125}));
}

TEST(ElementwiseSteps, AccumulateLeavesWhatItAdds) {
  BoundStep accumulate(StepKind::accumulate, {});
  const BufferId sum = accumulate.update(DType::f16, {1, 2, 3});
  const BufferId from = accumulate.read(DType::f16, {10, 20, 30});
  accumulate.run(prepare_elementwise);
  EXPECT_EQ(accumulate.values(sum), (Values{11, 22, 33}));
  EXPECT_EQ(accumulate.values(from), (Values{10, 20, 30}));
}

TEST(ElementwiseSteps, PackBatchPadsTheHalfOfItsIteration) {
  Graph graph;
  graph.values = {{"images", {.n = 1, .h = 1, .w = 2, .c = 3}}};
  BoundStep pack(StepKind::pack_batch, graph);
  pack.read(DType::f32, {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16});
  pack.read(DType::i32, {7, 8});
  pack.use_object(State{.step = {.iteration = 3}}, Role::state, Access::read);
  const BufferId images = pack.write(DType::f32, 8), labels = pack.write(DType::i32, 1);
  pack.run(prepare_elementwise);
  EXPECT_EQ(pack.values(images), (Values{11, 13, 15, 0, 12, 14, 16, 0}));
  EXPECT_EQ(pack.values(labels), Values{8});
}

Graph two_parameters() {
  Graph graph;
  graph.parameters = {{.name = "bias", .dims = {3}, .decays = false}, {.name = "weight", .dims = {2, 2}}};
  return graph;
}

// A step that updates the weight and then the bias, other than the graph has them.
struct UpdateStep {
  explicit UpdateStep(std::optional<double> overflow_flag) : bound(StepKind::update, two_parameters()) {
    bound.rule = {.optimizer = Optimizer::sgd, .momentum = 0.5, .weight_decay = 0.25};
    bound.use_object(State{.step = {.learning_rate = 0.5, .gradient_scale = 0.5, .loss_scale = 4}},
                     Role::state, Access::read);
    if (overflow_flag) bound.buffer(bound.read(DType::f32, {*overflow_flag})).role = Role::overflow;
    weight = bound.update(DType::f32, {1, 2, 3, 4}, "weight");
    bound.update(DType::f32, {0, 0, 0, 8});
    bound.read(DType::f16, {8, 16, 24, 32});
    copy = bound.write(DType::f16, 4);
    bias = bound.update(DType::f32, {1, 2, 3}, "bias");
    bound.update(DType::f32, {0, 0, 0});
    bound.read(DType::f32, {8, 8, 8});
  }
  BoundStep bound;
  BufferId weight = 0, copy = 0, bias = 0;
};

TEST(UpdateSteps, UpdateKnowsWhichParametersDecay) {
  for (const std::optional<double> overflow : {std::optional<double>(), std::optional<double>(0)}) {
    UpdateStep update(overflow);
    update.bound.run(prepare_update);
    // slope = gradient / 8 + weight / 4; velocity = momentum / 2 + slope; weight -= velocity / 2
    EXPECT_EQ(update.bound.values(update.weight), (Values{0.375, 0.75, 1.125, -0.5}));
    EXPECT_EQ(update.bound.values(update.copy), (Values{0.375, 0.75, 1.125, -0.5}));
    EXPECT_EQ(update.bound.values(update.bias), (Values{0.5, 1.5, 2.5}));
  }
}

TEST(UpdateSteps, UpdateLeavesAllAsItWasAfterAnOverflow) {
  UpdateStep update(1);
  update.bound.run(prepare_update);
  EXPECT_EQ(update.bound.values(update.weight), (Values{1, 2, 3, 4}));
  EXPECT_EQ(update.bound.values(update.bias), (Values{1, 2, 3}));
}

TEST(UpdateSteps, UpdateRefusesWhatIsNoParameter) {
  BoundStep bound(StepKind::update, two_parameters());
  bound.use_object(State{}, Role::state, Access::read);
  bound.update(DType::f32, {1}, "unknown");
  bound.update(DType::f32, {1});
  bound.read(DType::f32, {1});
  EXPECT_THROW(bound.run(prepare_update), std::logic_error);
}

TEST(UpdateSteps, OverflowIsLookedForInEveryGradient) {
  for (std::size_t bad = 0; bad < 3; ++bad) {
    Values last(3 + static_cast<std::size_t>(kChunkElements), 1.0);
    if (bad == 2) last.back() = std::nan("");
    BoundStep find(StepKind::find_overflow, {});
    const BufferId overflow = find.write(DType::f32, 1);
    find.read(DType::f16, {1, bad == 1 ? INFINITY : 2});
    find.read(DType::f32, last);
    find.run(prepare_update, 2);
    EXPECT_EQ(find.values(overflow), Values{bad == 0 ? 0.0 : 1.0});
  }
}

TEST(UpdateSteps, AdvanceStateFollowsTheRulesLossScaling) {
  BoundStep advance(StepKind::advance_state, {});
  advance.rule.loss_scaling = {.kind = LossScaling::Kind::dynamic, .growth_interval = 100};
  const BufferId state =
      advance.use_object(State{.step = {.iteration = 9, .loss_scale = 64}}, Role::state, Access::read_write);
  advance.buffer(advance.read(DType::f32, {2})).role = Role::overflow;
  advance.run(prepare_update, 2);
  EXPECT_EQ(advance.object<State>(state).step.iteration, 11U);
  EXPECT_EQ(advance.object<State>(state).step.loss_scale, 16);
  EXPECT_EQ(advance.records[9].loss_scale, 64);
  EXPECT_EQ(advance.records[10].loss_scale, 32);
  EXPECT_EQ(advance.records[10].skipped, 1);
}

}  // namespace
}  // namespace plumb::cuda
