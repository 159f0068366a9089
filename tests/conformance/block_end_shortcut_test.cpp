// Shortcuts of blocks that end without x, instruction by instruction.
#include <utility>
#include <vector>

#include "kernels/lowering.h"
#include "tests/conformance/device_under_test.h"
#include "tests/conformance/hand_made.h"
#include "tests/conformance/reference_run.h"

namespace plumb {
namespace {

class GpuBlockEndShortcuts : public Conformance {};

// A block's end whose shortcut is a product, too: a -> conv 1x1 and b -> conv 1x1 -> norm, ReLU of the sum.
TEST_F(GpuBlockEndShortcuts, AreProducts) {
  struct Case {
    Shape in;  // b's, before every stride-th pixel is taken
    int stride;
    std::int64_t channels;  // of a
  };
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const Case& one : {Case{{3, 7, 7, 64}, 1, 64},
                            {{3, 14, 14, 128}, 2, 64},
                            {{2, 13, 15, 64}, 2, 128},
                            {{1, 28, 28, 256}, 2, 128}}) {
      SCOPED_TRACE(testing::Message()
                   << name_of(dtype) << " " << one.in.w << " pixels, stride " << one.stride);
      const auto sampled = [&](std::int64_t side) { return (side + one.stride - 1) / one.stride; };
      const std::int64_t inputs = one.in.c, outputs = 4 * inputs;
      const Shape b{one.in.n, sampled(one.in.h), sampled(one.in.w), inputs}, a{b.n, b.h, b.w, one.channels},
          out{b.n, b.h, b.w, outputs};
      Graph graph;
      graph.values = {
          {"images", {b.n, 1, 1, 3}}, {"in", one.in}, {"shortcut", out}, {"a", a}, {"x", out}, {"y", out}};
      graph.parameters = {{.name = "weight", .dims = {outputs, inputs, 1, 1}},
                          {.name = "scale", .dims = {outputs}},
                          {.name = "bias", .dims = {outputs}},
                          {.name = "last", .dims = {outputs, one.channels, 1, 1}}};
      graph.statistics = {{"mean", outputs}, {"variance", outputs}};
      graph.ops = {Conv{.name = "shortcut", .in = 1, .out = 2, .weight = 0, .stride = one.stride},
                   BatchNorm{.name = "norm",
                             .in = 2,
                             .out = 5,
                             .scale = 1,
                             .bias = 2,
                             .running_mean = 0,
                             .running_variance = 1},
                   Conv{.name = "last", .in = 3, .out = 4, .weight = 3}};
      HandMade made(graph);
      made.program.layout = TensorLayout::nhwc;
      std::vector<BufferId> numbers;
      const auto values = [&](DType of, std::vector<std::int64_t> dims) {
        numbers.push_back(made.add(of, std::move(dims)));
        return numbers.back();
      };
      const auto unwritten = [&](DType of, std::vector<std::int64_t> dims) {
        return made.add(of, std::move(dims), false);
      };
      for (ParameterId p = 0; p < graph.parameters.size(); ++p)
        made.program.tensors.parameters[p].master = values(DType::f32, graph.parameters[p].dims);
      for (const Statistic& statistic : graph.statistics)
        made.program.tensors.statistics.push_back(values(DType::f32, {statistic.channels}));
      const auto master = [&](ParameterId p) { return made.program.tensors.parameters[p].master; };

      SamplePixels sample{.in = values(dtype, nchw(one.in)),
                          .sums = unwritten(DType::f32, {inputs}),
                          .counters = made.add(DType::i32, {4096})};
      if (one.stride > 1) sample.out = unwritten(dtype, nchw(b));
      const BufferId product_in = sample.out ? sample.out->buffer : sample.in.buffer;
      const ChannelProducts gram{
          .left = product_in, .right = product_in, .products = unwritten(DType::f32, {inputs, inputs})};
      const ProductNormStatistics statistics{
          .products = gram.products.buffer,
          .sums = sample.sums.buffer,
          .weight = master(0),
          .moments = {.scale = master(1),
                      .bias = master(2),
                      .running_mean = made.program.tensors.statistics[0],
                      .running_variance = made.program.tensors.statistics[1],
                      .scale_shift = unwritten(DType::f32, {2, outputs}),
                      .mean = unwritten(DType::f32, {outputs}),
                      .inv_std = unwritten(DType::f32, {outputs})},
          .scaled = unwritten(dtype, {outputs, inputs}),
          .scaled_transposed = unwritten(dtype, {inputs, outputs}),
          .deviations = unwritten(DType::f32, {outputs, inputs})};
      const BlockEndForward forward{.in = values(dtype, nchw(a)),
                                    .scaled_transposed = values(dtype, {one.channels, outputs}),
                                    .scale_shift = values(DType::f32, {2, outputs}),
                                    .residual_scale_shift = statistics.moments.scale_shift.buffer,
                                    .shortcut_in = product_in,
                                    .shortcut_scaled_transposed = statistics.scaled_transposed.buffer,
                                    .out = unwritten(dtype, nchw(out)),
                                    .relu_mask = unwritten(DType::u8, {out.elements() / 8})};
      const ChannelProducts products{.left = values(dtype, nchw(out)),
                                     .right = product_in,
                                     .products = unwritten(DType::f32, {outputs, inputs})};
      const ProductNormBackward coefficients{.products = products.products.buffer,
                                             .d_out_sums = values(DType::f32, {outputs}),
                                             .sums = sample.sums.buffer,
                                             .deviations = statistics.deviations.buffer,
                                             .weight = statistics.weight,
                                             .scale = statistics.moments.scale,
                                             .mean = statistics.moments.mean.buffer,
                                             .inv_std = statistics.moments.inv_std.buffer,
                                             .d_weight = unwritten(dtype, {outputs, inputs, 1, 1}),
                                             .d_scale = unwritten(DType::f32, {outputs}),
                                             .d_bias = unwritten(DType::f32, {outputs}),
                                             .factors = unwritten(dtype, {inputs, inputs}),
                                             .shift = unwritten(DType::f32, {inputs + 1})};
      made.add(sample, 0);
      made.add(gram, 0);
      made.add(statistics, 1);
      made.add(forward, 2);
      made.add(products, 0);
      made.add(coefficients, 0);
      made.add(BlockEndBackwardData{.d_out = products.left,
                                    .in = product_in,
                                    .scaled = statistics.scaled.buffer,
                                    .factors = coefficients.factors.buffer,
                                    .shift = coefficients.shift.buffer,
                                    .d_in = unwritten(dtype, nchw(b))},
               0);
      CheckedProgram program(*device(), made.graph, made.rule, made.program);
      for (const BufferId id : numbers) {
        const DType of = made.program.buffers[id].dtype;
        program.write(id, normal_values(of, program.held(id).size(), id));
      }
      for (InstructionId id = 0; id < made.program.instructions.size(); ++id) program.check(id);
    }
}

// A convolution's data gradient, masked by a block's end, and its sum, which the norm of that block needs.
// The other gradient may have every second pixel of every second row alone.
TEST_F(GpuBlockEndShortcuts, AreAddedWhereAGradientIsSummed) {
  struct Case {
    Shape extent;
    std::int64_t stride;
  };
  for (const auto& [extent, stride] :
       {Case{{3, 7, 7, 256}, 1}, {{5, 10, 10, 128}, 1}, {{3, 7, 9, 128}, 2}, {{2, 28, 14, 128}, 2}}) {
    Shape sampled = extent;
    sampled.h = (extent.h + stride - 1) / stride;
    sampled.w = (extent.w + stride - 1) / stride;
    const Shape narrow{extent.n, extent.h, extent.w, 64};
    Graph graph;
    graph.values = {{"images", {extent.n, 1, 1, 3}}, {"in", extent}, {"out", narrow}};
    graph.parameters = {{.name = "weight", .dims = {narrow.c, extent.c, 1, 1}}};
    graph.ops = {Conv{.name = "conv", .in = 1, .out = 2, .weight = 0}};
    HandMade made(graph);
    made.program.layout = TensorLayout::nhwc;
    const BufferId weight = made.add(DType::f16, graph.parameters[0].dims),
                   d_out = made.add(DType::f16, nchw(narrow)), added = made.add(DType::f16, nchw(sampled)),
                   mask = made.add(DType::u8, {extent.elements() / 8});
    made.program.tensors.parameters[0].master = weight;
    made.add(ConvBackwardData{.d_out = d_out,
                              .weight = weight,
                              .d_in = made.add(DType::f16, nchw(extent), false),
                              .added = added,
                              .relu_mask = mask,
                              .d_bias = made.add(DType::f32, {extent.c}, false)});
    made.program.instructions[0].workspace_bytes = std::size_t{1} << 20;  // the most that it may take
    CheckedProgram program(*device(), made.graph, made.rule, made.program);
    for (const BufferId id : {weight, d_out, added})
      program.write(id, normal_values(DType::f16, program.held(id).size(), id));
    Doubles bits(static_cast<std::size_t>(extent.elements() / 8));
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<double>((i * 2654435761U >> 7) % 256);
    program.write(mask, bits);
    program.check(0);
  }
}

}  // namespace
}  // namespace plumb
