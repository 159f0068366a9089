// The references of block ends without x, chained without a rounding, against the references of the usual
// way: conv -> norm -> add -> ReLU, forward and backward.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/lowering.h"
#include "tests/conformance/hand_made.h"
#include "tests/conformance/instruction_reference.h"
#include "tests/kernels/graph_builder.h"

namespace plumb {
namespace {

// Instructions run by their references alone; buffers hold doubles.
class ReferenceRun {
 public:
  explicit ReferenceRun(const Graph& graph) : made_(graph) { made_.program.layout = TensorLayout::nhwc; }

  BufferId hold(std::vector<std::int64_t> dims, Doubles values) {
    const BufferId id = made_.add(DType::f32, std::move(dims));
    held_.resize(id + 1);
    held_[id] = std::move(values);
    return id;
  }
  BufferId zeros(std::vector<std::int64_t> dims) {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    return hold(std::move(dims), Doubles(static_cast<std::size_t>(count)));
  }
  const Doubles& held(BufferId id) const { return held_[id]; }

  // Makes several passes, because some results are made from others of the same instruction.
  void run(Operation operation, std::size_t op) {
    const Instruction instruction{.name = "instruction", .operation = std::move(operation), .op = op};
    InstructionReference reference(made_.graph, made_.rule, made_.program, DeviceKind::cuda);
    const Operands before = held_;
    for (int pass = 0; pass < 4; ++pass)
      for (auto& [id, expected] : reference.run(instruction, before, held_, {}))
        held_[id] = std::move(expected.values);
  }

 private:
  HandMade made_;
  Operands held_;
};

void expect_equal(const Doubles& found, const Doubles& wanted, const char* name) {
  ASSERT_EQ(found.size(), wanted.size()) << name;
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    error = std::max(error, std::abs(found[i] - wanted[i]));
    ASSERT_FALSE(std::isnan(found[i])) << name;
  }
  EXPECT_LE(error, 1e-9 * std::max(largest, 1e-3)) << name;
}

// Output channel kZeroScale has gamma = 0. Input channel kConstant is constant, and the output channel of the
// same number reads only that one.
constexpr std::size_t kZeroScale = 2, kConstant = 1;

void expect_the_usual_way(const Shape& images, bool normalised_shortcut) {
  SCOPED_TRACE(testing::Message() << images.n << " x " << images.h << " x " << images.w
                                  << (normalised_shortcut ? ", normalised shortcut" : ""));
  constexpr std::int64_t c = 3, k = 10;
  GraphBuilder b(images);
  const ValueId x2 = b.conv(GraphBuilder::kImages, c, {}), a = b.norm(x2, Activation::relu),
                x = b.conv(a, k, {}), into_shortcut = b.conv(GraphBuilder::kImages, k, {}),
                shortcut = normalised_shortcut ? b.norm(into_shortcut) : into_shortcut,
                out = b.norm(x, Activation::relu, shortcut);
  const Shape extent = b.shape(a), wide = b.shape(out);
  const Graph graph = b.classify(out);
  const auto made_by = [&](ValueId value) {
    return static_cast<std::size_t>(
        std::ranges::find_if(graph.ops,
                             [&](const Op& op) { return name_of(op) == graph.values[value].name; }) -
        graph.ops.begin());
  };
  const std::size_t front_op = made_by(a), conv_op = made_by(x), end_op = made_by(out);
  const auto& front = std::get<BatchNorm>(graph.ops[front_op]);
  const auto& conv = std::get<Conv>(graph.ops[conv_op]);
  const auto& end = std::get<BatchNorm>(graph.ops[end_op]);

  std::vector<Doubles> values;
  for (const auto& one : random_tensors(graph, 3).parameters) values.emplace_back(one.begin(), one.end());
  values[end.scale][kZeroScale] = 0;
  values[front.scale][kConstant] = 0;
  values[front.bias][kConstant] = 0.75;
  for (std::size_t j = 0; j < c; ++j)
    if (j != kConstant) values[conv.weight][kConstant * c + j] = 0;
  const auto numbers = [](const Shape& shape, std::uint64_t seed) {
    return normal_values(DType::f32, static_cast<std::size_t>(shape.elements()), seed);
  };

  ReferenceRun run(graph);
  const auto parameter = [&](ParameterId id) { return run.hold(graph.parameters[id].dims, values[id]); };
  const auto statistic = [&](StatisticId id) {
    return run.hold({graph.statistics[id].channels},
                    Doubles(static_cast<std::size_t>(graph.statistics[id].channels), 0.5));
  };
  const auto moments = [&](const BatchNorm& norm) {
    const std::int64_t channels = graph.parameters[norm.scale].dims[0];
    return BatchNormMoments{.scale = parameter(norm.scale),
                            .bias = parameter(norm.bias),
                            .running_mean = statistic(norm.running_mean),
                            .running_variance = statistic(norm.running_variance),
                            .scale_shift = run.zeros({2, channels}),
                            .mean = run.zeros({channels}),
                            .inv_std = run.zeros({channels})};
  };

  const BatchNormStatistics statistics{.in = run.hold(nchw(extent), numbers(extent, 1)),
                                       .moments = moments(front),
                                       .counters = run.zeros({1})};
  const BatchNormApply apply{.in = statistics.in,
                             .out = run.zeros(nchw(extent)),
                             .scale_shift = statistics.moments.scale_shift.buffer,
                             .out_sums = run.zeros({c}),
                             .counters = statistics.counters};
  const ChannelProducts gram{
      .left = apply.out.buffer, .right = apply.out.buffer, .products = run.zeros({c, c})};
  const ProductNormStatistics product_norm{.products = gram.products.buffer,
                                           .sums = apply.out_sums->buffer,
                                           .weight = parameter(conv.weight),
                                           .moments = moments(end),
                                           .scaled = run.zeros({k, c}),
                                           .scaled_transposed = run.zeros({c, k}),
                                           .deviations = run.zeros({k, c})};
  BlockEndForward forward{.in = apply.out.buffer,
                          .scaled_transposed = product_norm.scaled_transposed.buffer,
                          .scale_shift = product_norm.moments.scale_shift.buffer,
                          .residual = run.hold(nchw(wide), numbers(wide, 2)),
                          .out = run.zeros(nchw(wide)),
                          .relu_mask = run.zeros({(wide.elements() + 7) / 8})};
  run.run(statistics, front_op);
  run.run(apply, front_op);
  run.run(gram, conv_op);
  run.run(product_norm, end_op);
  if (normalised_shortcut) {
    const std::size_t shortcut_op = made_by(shortcut);
    const BatchNormStatistics of_shortcut{.in = *forward.residual,
                                          .moments = moments(std::get<BatchNorm>(graph.ops[shortcut_op])),
                                          .counters = run.zeros({1})};
    run.run(of_shortcut, shortcut_op);
    forward.residual_scale_shift = of_shortcut.moments.scale_shift.buffer;
  }
  run.run(forward, conv_op);
  const ConvForward usual_conv{
      .in = apply.out.buffer, .weight = product_norm.weight, .out = run.zeros(nchw(wide))};
  const BatchNormStatistics usual_statistics{
      .in = usual_conv.out.buffer, .moments = moments(end), .counters = run.zeros({1})};
  const BatchNormMoments& usual = usual_statistics.moments;
  const BatchNormApply usual_apply{.in = usual_conv.out.buffer,
                                   .out = run.zeros(nchw(wide)),
                                   .scale_shift = usual.scale_shift.buffer,
                                   .residual = forward.residual,
                                   .residual_scale_shift = forward.residual_scale_shift};
  run.run(usual_conv, conv_op);
  run.run(usual_statistics, end_op);
  run.run(usual_apply, end_op);
  expect_equal(run.held(forward.out), run.held(usual_apply.out), "out");
  expect_equal(run.held(product_norm.moments.running_mean), run.held(usual.running_mean), "running_mean");
  expect_equal(run.held(product_norm.moments.running_variance), run.held(usual.running_variance),
               "running_variance");

  const BatchNormBackward usual_backward{.in = usual_conv.out.buffer,
                                         .d_out = run.hold(nchw(wide), numbers(wide, 4)),
                                         .scale = usual.scale,
                                         .bias = usual.bias,
                                         .mean = usual.mean->buffer,
                                         .inv_std = usual.inv_std.buffer,
                                         .d_in = WriteOrAdd(run.zeros(nchw(wide))),
                                         .d_scale = run.zeros({k}),
                                         .d_bias = run.zeros({k}),
                                         .out = usual_apply.out.buffer,
                                         .d_residual = run.zeros(nchw(wide))};
  const ConvBackwardWeights usual_weights{
      .in = apply.out.buffer, .d_out = usual_backward.d_in.buffer, .d_weight = run.zeros({k, c, 1, 1})};
  const ConvBackwardData usual_data{
      .d_out = usual_backward.d_in.buffer, .weight = product_norm.weight, .d_in = run.zeros(nchw(extent))};
  const BatchNormBackward usual_front{.in = statistics.in,
                                      .d_out = usual_data.d_in.buffer,
                                      .scale = statistics.moments.scale,
                                      .bias = statistics.moments.bias,
                                      .mean = statistics.moments.mean->buffer,
                                      .inv_std = statistics.moments.inv_std.buffer,
                                      .d_in = WriteOrAdd(run.zeros(nchw(extent))),
                                      .d_scale = run.zeros({c}),
                                      .d_bias = run.zeros({c}),
                                      .scale_shift = statistics.moments.scale_shift.buffer};
  run.run(usual_backward, end_op);
  run.run(usual_weights, conv_op);
  run.run(usual_data, conv_op);
  run.run(usual_front, front_op);

  // The block's masked gradient, and its sums.
  Doubles g = run.held(usual_backward.d_out), g_sums(k);
  const auto pixels = static_cast<std::size_t>(wide.h * wide.w);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const std::size_t channel = i / pixels % k, image = i / pixels / k;
    const std::size_t place = (image * pixels + i % pixels) * k + channel;  // in NHWC
    const bool passes = static_cast<unsigned>(run.held(forward.relu_mask)[place / 8]) >> place % 8 & 1U;
    EXPECT_EQ(passes, run.held(usual_apply.out)[i] > 0) << "mask of " << i;
    if (!passes) g[i] = 0;
    g_sums[channel] += g[i];
  }
  const ChannelProducts products{
      .left = run.hold(nchw(wide), g), .right = apply.out.buffer, .products = run.zeros({k, c})};
  const ProductNormBackward backward{.products = products.products.buffer,
                                     .d_out_sums = run.hold({k}, g_sums),
                                     .sums = apply.out_sums->buffer,
                                     .deviations = product_norm.deviations.buffer,
                                     .weight = product_norm.weight,
                                     .scale = product_norm.moments.scale,
                                     .inv_std = product_norm.moments.inv_std.buffer,
                                     .d_weight = run.zeros({k, c, 1, 1}),
                                     .d_scale = run.zeros({k}),
                                     .d_bias = run.zeros({k}),
                                     .factors = run.zeros({c, c}),
                                     .shift = run.zeros({c + 1})};
  const BlockEndBackwardData data{.d_out = products.left,
                                  .in = apply.out.buffer,
                                  .scaled = product_norm.scaled.buffer,
                                  .factors = backward.factors.buffer,
                                  .shift = backward.shift.buffer,
                                  .norm_in = statistics.in,
                                  .scale_shift = statistics.moments.scale_shift.buffer,
                                  .mean = statistics.moments.mean->buffer,
                                  .inv_std = statistics.moments.inv_std.buffer,
                                  .scale = statistics.moments.scale,
                                  .d_in = run.zeros(nchw(extent)),
                                  .d_scale = run.zeros({c}),
                                  .d_bias = run.zeros({c}),
                                  .coefficients = run.zeros({3, c})};
  const BatchNormBackwardApply front_backward{.d_activated = data.d_in.buffer,
                                              .in = statistics.in,
                                              .coefficients = data.coefficients->buffer,
                                              .d_in = run.zeros(nchw(extent))};
  run.run(products, conv_op);
  run.run(backward, conv_op);
  run.run(data, conv_op);
  run.run(front_backward, front_op);
  expect_equal(run.held(backward.d_weight), run.held(usual_weights.d_weight), "d_weight");
  expect_equal(run.held(backward.d_scale), run.held(usual_backward.d_scale), "d_scale");
  expect_equal(run.held(*backward.d_bias), run.held(usual_backward.d_bias), "d_bias");
  Doubles d_a = run.held(usual_data.d_in);
  for (std::size_t i = 0; i < d_a.size(); ++i)
    if (!(run.held(apply.out)[i] > 0)) d_a[i] = 0;
  expect_equal(run.held(data.d_in), d_a, "d_in");
  expect_equal(run.held(*data.d_scale), run.held(usual_front.d_scale), "front d_scale");
  expect_equal(run.held(*data.d_bias), run.held(usual_front.d_bias), "front d_bias");
  expect_equal(run.held(front_backward.d_in), run.held(usual_front.d_in), "front d_in");
}

TEST(BlockEndReference, EqualsTheUsualWay) {
  for (const Shape& images : {Shape{3, 4, 4, 3}, {1, 7, 7, 3}, {1, 1, 1, 3}, {5, 1, 1, 3}})
    for (const bool normalised_shortcut : {false, true}) expect_the_usual_way(images, normalised_shortcut);
}

}  // namespace
}  // namespace plumb
