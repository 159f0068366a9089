// Shortcuts of blocks that end without x, instruction by instruction.
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/program/lowering.h"
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
  struct Numbers {
    DType dtype;
    bool by_products, tf32;
  };
  for (const auto& [dtype, by_products, tf32] : {Numbers{DType::f16, false, false},
                                                 {DType::bf16, false, false},
                                                 {DType::f16, true, false},
                                                 {DType::f32, true, false},
                                                 {DType::f32, true, true}})
    for (const Case& one : {Case{{3, 7, 7, 64}, 1, 64},
                            {{3, 14, 14, 128}, 2, 64},
                            {{2, 13, 15, 64}, 2, 128},
                            {{1, 28, 28, 256}, 2, 128}}) {
      SCOPED_TRACE(testing::Message()
                   << name_of(dtype) << (by_products ? " by products" : "") << (tf32 ? " tf32 " : " ")
                   << one.in.w << " pixels, stride " << one.stride);
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
      made.program.allow_tf32 = tf32;
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
      if (one.stride > 1 || tf32) sample.out = unwritten(dtype, nchw(b));
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
                                    .relu_mask = unwritten(DType::u8, {out.elements() / 8}),
                                    .by_products = by_products};
      const ChannelProducts products{.left = values(dtype, nchw(out)),
                                     .right = product_in,
                                     .products = unwritten(DType::f32, {outputs, inputs})};
      const ProductNormBackward coefficients{.products = products.products.buffer,
                                             .d_out_sums = values(DType::f32, {outputs}),
                                             .sums = sample.sums.buffer,
                                             .deviations = statistics.deviations.buffer,
                                             .weight = statistics.weight,
                                             .scale = statistics.moments.scale,
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
                                    .d_in = unwritten(dtype, nchw(b)),
                                    .by_products = by_products},
               0);
      for (Instruction& instruction : made.program.instructions)
        instruction.workspace_bytes = std::size_t{8} << 20;  // the most that a library may take
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

// The same by an instruction of its own, from one gradient or two.
TEST_F(GpuBlockEndShortcuts, AreAddedWhereAGradientIsMasked) {
  struct Case {
    Shape extent;
    std::int64_t stride;  // of the second gradient; 0: there is none
  };
  struct Numbers {
    DType dtype;
    bool tf32;
  };
  for (const auto& [dtype, tf32] :
       {Numbers{DType::f32, false}, {DType::f32, true}, {DType::f16, false}, {DType::bf16, false}})
    for (const auto& [extent, stride] : {Case{{1, 1, 1, 128}, 0},
                                         {{3, 7, 7, 256}, 0},
                                         {{5, 10, 10, 128}, 1},
                                         {{3, 7, 9, 128}, 2},
                                         {{2, 28, 14, 512}, 2}}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << (tf32 ? " tf32, " : ", ") << extent.w
                                      << " pixels, stride " << stride);
      Graph graph;
      graph.values = {{"images", {extent.n, 1, 1, 3}}, {"in", extent}, {"out", extent}};
      graph.ops = {BatchNorm{.name = "norm", .in = 1, .out = 2}};
      HandMade made(graph);
      made.program.layout = TensorLayout::nhwc;
      made.program.allow_tf32 = tf32;
      std::vector<BufferId> numbers{made.add(dtype, nchw(extent))};
      const BufferId mask = made.add(DType::u8, {extent.elements() / 8});
      MaskedGradient gradient{.d_out = numbers[0],
                              .relu_mask = mask,
                              .d_in = made.add(dtype, nchw(extent), false),
                              .sums = made.add(DType::f32, {extent.c}, false),
                              .counters = made.add(DType::i32, {4096})};
      if (stride > 0) {
        Shape sampled = extent;
        sampled.h = (extent.h + stride - 1) / stride;
        sampled.w = (extent.w + stride - 1) / stride;
        numbers.push_back(made.add(dtype, nchw(sampled)));
        gradient.second_d_out = numbers.back();
      }
      made.add(gradient);
      CheckedProgram program(*device(), made.graph, made.rule, made.program);
      for (const BufferId id : numbers) program.write(id, normal_values(dtype, program.held(id).size(), id));
      Doubles bits(static_cast<std::size_t>(extent.elements() / 8));
      for (std::size_t i = 0; i < bits.size(); ++i)
        bits[i] = static_cast<double>((i * 2654435761U >> 7) % 256);
      program.write(mask, bits);
      program.check(0);
      if (!tf32) continue;
      program.run(0);
      for (const double value : program.held(gradient.d_in))
        ASSERT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(value)) & 0x1fffU, 0U) << value;
    }
}

}  // namespace
}  // namespace plumb
