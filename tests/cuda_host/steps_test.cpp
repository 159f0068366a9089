// Instructions as in a Program, through their prepare functions: operand order, and how graph, rule and state
// reach the kernels.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/softmax_loss.h"
#include "tests/cuda_host/bound_instruction.h"

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
  BoundInstruction bound(dense_graph());
  bound.instruction.workspace_bytes = kGemmLimit;
  const DenseForward dense{.in = bound.add(dtype, in),
                           .weight = bound.add(dtype, weight),
                           .bias = bound.add(DType::f32, bias),
                           .out = bound.add(out_dtype, kRows * kOut)};
  bound.run(dense);
  Values wanted = product(
      kRows, kOut, kIn, [&](std::size_t n, std::size_t k) { return in[n * kIn + k]; },
      [&](std::size_t k, std::size_t o) { return weight[o * kIn + k]; });
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += bias[i % kOut];
  expect_close(bound.values(dense.out), wanted, out_dtype, 16, 4);
  const std::size_t rounded_bias = out_dtype == DType::f32 ? 0 : 256;
  EXPECT_EQ(bound.instruction.workspace_bytes, rounded_bias) << "and the plan's, not the limit";
}

TEST(DenseInstructions, ForwardAddsTheBiasAndGivesF32) {
  for (DType dtype : kStorageTypes) expect_forward(dtype, DType::f32);
}

TEST(DenseInstructions, ForwardToAHalfTypeTakesItsBiasInThatTypeToo) {
  for (DType dtype : {DType::f16, DType::bf16}) expect_forward(dtype, dtype);
}

TEST(DenseInstructions, BackwardGivesTheGradientsOfInputWeightAndBias) {
  for (DType dtype : kStorageTypes) {
    const Values in = normal_values(dtype, kRows * kIn, 1), weight = normal_values(dtype, kOut * kIn, 2);
    const Values d_out = normal_values(dtype, kRows * kOut, 3);
    BoundInstruction data(dense_graph());
    const DenseBackwardData of_data{.d_out = data.add(dtype, d_out),
                                    .weight = data.add(dtype, weight),
                                    .d_in = data.add(dtype, kRows * kIn)};
    data.run(of_data);
    expect_close(data.values(of_data.d_in),
                 product(
                     kRows, kIn, kOut, [&](std::size_t n, std::size_t o) { return d_out[n * kOut + o]; },
                     [&](std::size_t o, std::size_t k) { return weight[o * kIn + k]; }),
                 dtype, 16);

    BoundInstruction weights(dense_graph());
    const DenseBackwardWeights of_weights{.in = weights.add(dtype, in),
                                          .d_out = weights.add(dtype, d_out),
                                          .d_weight = weights.add(dtype, kOut * kIn),
                                          .d_bias = weights.add(DType::f32, kOut)};
    weights.run(of_weights);
    expect_close(weights.values(of_weights.d_weight),
                 product(
                     kOut, kIn, kRows, [&](std::size_t o, std::size_t n) { return d_out[n * kOut + o]; },
                     [&](std::size_t n, std::size_t k) { return in[n * kIn + k]; }),
                 dtype, 16);
    Values sums(kOut, 0.0);
    for (std::size_t i = 0; i < d_out.size(); ++i) sums[i % kOut] += d_out[i];
    expect_close(weights.values(of_weights.d_bias), sums, DType::f32, 8);
  }
}

// Each value for 8 channels: those of a pool come in eights.
Values in_eights(const Values& values) {
  Values all;
  for (double value : values) all.insert(all.end(), 8, value);
  return all;
}

TEST(PoolInstructions, MaxKeepsWhereItCameFrom) {
  Graph graph;
  graph.values = {{"in", {.n = 1, .h = 4, .w = 4, .c = 8}}, {"out", {.n = 1, .h = 2, .w = 2, .c = 8}}};
  graph.ops = {Pool{.name = "pool", .in = 0, .out = 1, .kernel = 2, .stride = 2}};
  BoundInstruction forward(graph);
  const BufferId out = forward.add(DType::f16, 4 * 8), argmax = forward.add(DType::u8, 4 * 8);
  forward.run(
      PoolForward{.in = forward.add(DType::f16, in_eights({1, 9, 2, 3, 4, 5, 8, 6, 7, 0, 1, 1, 2, 3, 1, 4})),
                  .out = out,
                  .argmax = argmax});
  EXPECT_EQ(forward.values(out), in_eights({9, 8, 7, 4}));
  EXPECT_EQ(forward.values(argmax), in_eights({1, 2, 0, 3}));

  BoundInstruction backward(graph);
  PoolBackward pool{.d_out = backward.add(DType::f16, in_eights({1, 2, 3, 4})),
                    .d_in = backward.add(DType::f16, 16 * 8),
                    .argmax = backward.add(DType::u8, forward.values(argmax))};
  backward.run(pool);
  EXPECT_EQ(backward.values(pool.d_in), in_eights({0, 1, 0, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 4}));
  pool.second_d_out = backward.add(DType::f16, in_eights({10, 20, 30, 40}));
  backward.run(pool);
  EXPECT_EQ(backward.values(pool.d_in), in_eights({0, 11, 0, 0, 0, 0, 22, 0, 33, 0, 0, 0, 0, 0, 0, 44}));
}

TEST(PoolInstructions, MaxNormalisesByScaleAndShift) {
  Graph graph;
  graph.values = {{"in", {.n = 1, .h = 2, .w = 2, .c = 16}}, {"out", {.n = 1, .c = 16}}};
  graph.ops = {Pool{.name = "pool", .in = 0, .out = 1, .kernel = 2, .stride = 2}};
  BoundInstruction forward(graph);
  const BufferId out = forward.add(DType::f16, 16), argmax = forward.add(DType::u8, 16);
  forward.run(PoolForward{.in = forward.add(DType::f16, in_eights({1, 1, 4, 4, 3, 3, 2, 2})),
                          .out = out,
                          .argmax = argmax,
                          .scale_shift = forward.add(DType::f32, in_eights({-1, 2, 3, 1}))});
  EXPECT_EQ(forward.values(out), in_eights({2, 9}));
  EXPECT_EQ(forward.values(argmax), in_eights({0, 1}));
}

TEST(PoolInstructions, AverageIsGlobal) {
  Graph graph;
  graph.values = {{"in", {.n = 1, .h = 2, .w = 2, .c = 16}}, {"out", {.n = 1, .c = 16}}};
  graph.ops = {Pool{.name = "pool", .in = 0, .out = 1, .kind = Pool::Kind::global_average, .kernel = 2}};
  BoundInstruction forward(graph);
  const BufferId out = forward.add(DType::f32, 16);
  forward.run(
      PoolForward{.in = forward.add(DType::f32, in_eights({1, 10, 2, 20, 3, 30, 4, 40})), .out = out});
  EXPECT_EQ(forward.values(out), in_eights({2.5, 25}));
  BoundInstruction backward(graph);
  const BufferId d_in = backward.add(DType::f32, 4 * 16);
  backward.run(PoolBackward{.d_out = backward.add(DType::f32, in_eights({4, 8})), .d_in = d_in});
  EXPECT_EQ(backward.values(d_in), in_eights({1, 2, 1, 2, 1, 2, 1, 2}));
}

TEST(LossInstruction, TakesSmoothingFromTheGraphAndScaleFromTheState) {
  Graph graph;
  graph.values = {{"logits", {.n = 2, .c = 4}}};
  graph.ops = {SoftmaxLoss{.name = "loss", .in = 0, .label_smoothing = 0.2}};
  BoundInstruction bound(graph);
  const BufferId d_logits = bound.add(DType::f16, 8);
  bound.run(
      SoftmaxCrossEntropy{.logits = bound.add(DType::f32, Values(8, 1.0)),
                          .labels = bound.add(DType::i32, {0, 3}),
                          .d_logits = d_logits,
                          .state = bound.add_object(State{.step = {.iteration = 5, .loss_scale = 16}})});
  EXPECT_EQ(bound.instruction.workspace_bytes, 2 * sizeof(RowLoss));
  EXPECT_NEAR(bound.records[5].loss, std::log(4.0), 1e-6);
  EXPECT_EQ(bound.records[5].top1, 2);
  // (1/4 - q) / 2 images * 16, with q = 0.8 + 0.05 at the label and 0.05 elsewhere
  expect_close(bound.values(d_logits), {-4.8, 1.6, 1.6, 1.6, 1.6, 1.6, 1.6, -4.8}, DType::f16, 2);
}

TEST(ElementwiseInstructions, CastTakesTheStepsScale) {
  BoundInstruction cast;
  const BufferId into = cast.add(DType::bf16, 3);
  cast.run(Cast{.from = cast.add(DType::f32, {8, -16, 1}), .into = into, .scale = 0.125});
  EXPECT_EQ(cast.values(into), (Values{1, -2, 0.125}));
}

TEST(ElementwiseInstructions, AccumulateLeavesWhatItAdds) {
  BoundInstruction accumulate;
  const BufferId sum = accumulate.add(DType::f16, {1, 2, 3});
  const BufferId from = accumulate.add(DType::f16, {10, 20, 30});
  accumulate.run(Accumulate{.into = sum, .from = from});
  EXPECT_EQ(accumulate.values(sum), (Values{11, 22, 33}));
  EXPECT_EQ(accumulate.values(from), (Values{10, 20, 30}));
}

TEST(ElementwiseInstructions, PackBatchNormalisesTheHalfOfItsIteration) {
  Graph graph;
  graph.values = {{"images", {.n = 1, .h = 1, .w = 2, .c = 3}}};
  BoundInstruction pack(graph);
  const BufferId images = pack.add(DType::f32, 8), labels = pack.add(DType::i32, 1);
  const std::array<std::uint8_t, 12> pixels{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};
  pack.run(PackBatch{.staged_images = pack.add_object(pixels),
                     .staged_labels = pack.add(DType::i32, {7, 8}),
                     .state = pack.add_object(State{.step = {.iteration = 3}}),
                     .images = images,
                     .labels = labels,
                     .normalisation = {{2, 1, 1}, {0, -10, 1}}});
  EXPECT_EQ(pack.values(images), (Values{22, 2, 14, 0, 28, 5, 17, 0}));
  EXPECT_EQ(pack.values(labels), Values{8});
}

Graph two_parameters() {
  Graph graph;
  graph.parameters = {{.name = "bias", .dims = {3}, .decays = false}, {.name = "weight", .dims = {2, 2}}};
  return graph;
}

// An instruction that updates the weight before the bias, unlike the graph's order.
struct UpdateInstructions {
  explicit UpdateInstructions(std::optional<double> overflow_flag) {
    bound.rule = {.optimizer = Optimizer::sgd, .momentum = 0.5, .weight_decay = 0.25};
    if (overflow_flag) update.overflow = bound.add(DType::f32, {*overflow_flag});
  }
  void run() { bound.run(update); }

  BoundInstruction bound{two_parameters()};
  BufferId weight = bound.add(DType::f32, {1, 2, 3, 4}), copy = bound.add(DType::f16, 4);
  BufferId bias = bound.add(DType::f32, {1, 2, 3});
  Update update{.state = bound.add_object(
                    State{.step = {.learning_rate = 0.5, .gradient_scale = 0.5, .loss_scale = 4}}),
                .overflow = {},
                .parameters = {{.parameter = 1,
                                .master = weight,
                                .momentum = bound.add(DType::f32, {0, 0, 0, 8}),
                                .gradient = bound.add(DType::f16, {8, 16, 24, 32}),
                                .copies = {copy}},
                               {.parameter = 0,
                                .master = bias,
                                .momentum = bound.add(DType::f32, {0, 0, 0}),
                                .gradient = bound.add(DType::f32, {8, 8, 8}),
                                .copies = {}}}};
};

TEST(UpdateInstructions, UpdateKnowsWhichParametersDecay) {
  for (const std::optional<double> overflow : {std::optional<double>(), std::optional<double>(0)}) {
    UpdateInstructions update(overflow);
    update.run();
    // slope = gradient / 8 + weight / 4; velocity = momentum / 2 + slope; weight -= velocity / 2
    EXPECT_EQ(update.bound.values(update.weight), (Values{0.375, 0.75, 1.125, -0.5}));
    EXPECT_EQ(update.bound.values(update.copy), (Values{0.375, 0.75, 1.125, -0.5}));
    EXPECT_EQ(update.bound.values(update.bias), (Values{0.5, 1.5, 2.5}));
  }
}

TEST(UpdateInstructions, UpdateLeavesAllAsItWasAfterAnOverflow) {
  UpdateInstructions update(1);
  update.run();
  EXPECT_EQ(update.bound.values(update.weight), (Values{1, 2, 3, 4}));
  EXPECT_EQ(update.bound.values(update.bias), (Values{1, 2, 3}));
}

TEST(UpdateInstructions, UpdateRefusesTensorsOfAnotherSizeAndASecondCopy) {
  UpdateInstructions instruction(std::nullopt);
  const Update good = instruction.update;
  instruction.update.parameters[0].gradient = instruction.update.parameters[1].gradient;
  EXPECT_THROW(instruction.run(), std::logic_error);
  instruction.update = good;
  instruction.update.parameters[0].copies.emplace_back(instruction.copy);
  EXPECT_THROW(instruction.run(), std::logic_error);
  instruction.update = good;
  EXPECT_NO_THROW(instruction.run());
}

TEST(UpdateInstructions, OverflowIsLookedForInEveryGradient) {
  for (std::size_t bad = 0; bad < 3; ++bad) {
    Values last(3 + static_cast<std::size_t>(kChunkElements), 1.0);
    if (bad == 2) last.back() = std::nan("");
    BoundInstruction find;
    const BufferId overflow = find.add(DType::f32, 1);
    find.run(FindOverflow{.overflow = overflow,
                          .gradients = {find.add(DType::f16, {1, bad == 1 ? INFINITY : 2}),
                                        find.add(DType::f32, last)}},
             2);
    EXPECT_EQ(find.values(overflow), Values{bad == 0 ? 0.0 : 1.0});
  }
}

TEST(UpdateInstructions, AdvanceStateFollowsTheRulesLossScaling) {
  BoundInstruction advance;
  advance.rule.loss_scaling = {.kind = LossScaling::Kind::dynamic, .growth_interval = 100};
  const BufferId state = advance.add_object(State{.step = {.iteration = 9, .loss_scale = 64}});
  advance.run(AdvanceState{.state = state, .overflow = advance.add(DType::f32, {2})}, 2);
  EXPECT_EQ(advance.object<State>(state).step.iteration, 11U);
  EXPECT_EQ(advance.object<State>(state).step.loss_scale, 16);
  EXPECT_EQ(advance.records[9].loss_scale, 64);
  EXPECT_EQ(advance.records[10].loss_scale, 32);
  EXPECT_EQ(advance.records[10].skipped, 1);
}

TEST(PrepareInstruction, RefusesWhatNoCudaDeviceRuns) {
  BoundInstruction instruction;
  EXPECT_THROW(instruction.run(Recorded{}), std::logic_error);
  EXPECT_THROW(instruction.run(BatchNormForward{.in = 0,
                                                .scale = 0,
                                                .bias = 0,
                                                .running_mean = 0,
                                                .running_variance = 0,
                                                .out = 0,
                                                .mean = 0,
                                                .inv_std = 0}),
               std::logic_error);
}

}  // namespace
}  // namespace plumb::cuda
