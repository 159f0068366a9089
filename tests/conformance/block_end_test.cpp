// Ends of blocks without x, instruction by instruction: norm -> ReLU -> conv 1x1 -> norm, shortcut, ReLU.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/program/lowering.h"
#include "tests/conformance/device_under_test.h"
#include "tests/conformance/hand_made.h"
#include "tests/conformance/reference_run.h"

namespace plumb {
namespace {

// The instructions' places in the Program, and the Graph's operations that they belong to.
enum Place : InstructionId { kApply, kGram, kStatistics, kForward, kProducts, kCoefficients, kData, kPlaces };
enum PlaceOfOp : std::size_t { kFront, kConv, kEnd };

// A block's end whose convolution has four times as many outputs as inputs, with numbers for all operands.
// Input channel 0 is constant. Output channel 0 has a scale of 0, output channel 1 is 0 everywhere, output
// channel 2 is constant, and with weights up to 1 output channel 3 has a variance of about epsilon.
class BlockEnd {
 public:
  struct Options {
    DType dtype = DType::f16;
    Shape extent;  // of the convolution's input
    bool normalised_shortcut = false;
    double gradient = 1;  // deviation of the block's gradient
    double weight = 1;    // relative to weights that keep the input's variance
    bool is_scale_zero = false, has_d_bias = true;
    bool by_products = false, tf32 = false;
  };
  explicit BlockEnd(const Options& options)
      : options_(options),
        extent_(options.extent),
        wide_{extent_.n, extent_.h, extent_.w, 4 * extent_.c},
        made_(graph_of(extent_, wide_)) {
    const std::int64_t c = extent_.c, k = wide_.c;
    const auto inputs = static_cast<std::size_t>(c), outputs = static_cast<std::size_t>(k);
    made_.program.layout = TensorLayout::nhwc;
    made_.program.allow_tf32 = options.tf32;
    add_parameters();

    const BufferId norm_in = values(options.dtype, nchw(extent_), 1);
    Doubles line = normal_values(DType::f32, 2 * inputs, 2);
    for (std::size_t i = 0; i < line.size(); ++i) line[i] = 0.25 * line[i] + (i < inputs ? 1 : 0.125);
    line[0] = 0, line[inputs] = 1;
    const BatchNormApply apply{.in = norm_in,
                               .out = unwritten(options.dtype, nchw(extent_)),
                               .scale_shift = written(DType::f32, {2, c}, line),
                               .out_sums = unwritten(DType::f32, {c}),
                               .counters = made_.add(DType::i32, {4096})};
    const ChannelProducts gram{
        .left = apply.out.buffer, .right = apply.out.buffer, .products = unwritten(DType::f32, {c, c})};
    const ProductNormStatistics statistics{
        .products = gram.products.buffer,
        .sums = apply.out_sums->buffer,
        .weight = master(0),
        .moments = {.scale = master(3),
                    .bias = master(4),
                    .running_mean = made_.program.tensors.statistics[2],
                    .running_variance = made_.program.tensors.statistics[3],
                    .scale_shift = unwritten(DType::f32, {2, k}),
                    .mean = unwritten(DType::f32, {k}),
                    .inv_std = unwritten(DType::f32, {k})},
        .scaled = unwritten(options.dtype, {k, c}),
        .scaled_transposed = unwritten(options.dtype, {c, k}),
        .deviations = unwritten(DType::f32, {k, c})};
    BlockEndForward forward{.in = apply.out.buffer,
                            .scaled_transposed = statistics.scaled_transposed.buffer,
                            .scale_shift = statistics.moments.scale_shift.buffer,
                            .residual = values(options.dtype, nchw(wide_), 3),
                            .out = unwritten(options.dtype, nchw(wide_)),
                            .relu_mask = unwritten(DType::u8, {(wide_.elements() + 7) / 8}),
                            .by_products = options.by_products};
    if (options.normalised_shortcut) forward.residual_scale_shift = values(DType::f32, {2, k}, 4);

    Doubles gradient = normal_values(DType::f32, static_cast<std::size_t>(wide_.elements()), 5),
            sums(outputs);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = i % 3 == 0 ? 0 : rounded(options.dtype, options.gradient * gradient[i]);  // masked
      sums[channel_of(wide_, i)] += gradient[i];
    }
    const ChannelProducts products{.left = written(options.dtype, nchw(wide_), gradient),
                                   .right = apply.out.buffer,
                                   .products = unwritten(DType::f32, {k, c})};
    ProductNormBackward coefficients{.products = products.products.buffer,
                                     .d_out_sums = written(DType::f32, {k}, sums),
                                     .sums = apply.out_sums->buffer,
                                     .deviations = statistics.deviations.buffer,
                                     .weight = statistics.weight,
                                     .scale = statistics.moments.scale,
                                     .inv_std = statistics.moments.inv_std.buffer,
                                     .d_weight = unwritten(options.dtype, {k, c, 1, 1}),
                                     .d_scale = unwritten(DType::f32, {k}),
                                     .factors = unwritten(options.dtype, {c, c}),
                                     .shift = unwritten(DType::f32, {c + 1})};
    if (options.has_d_bias) coefficients.d_bias = unwritten(DType::f32, {k});
    BlockEndBackwardData data{.d_out = products.left,
                              .in = apply.out.buffer,
                              .scaled = statistics.scaled.buffer,
                              .factors = coefficients.factors.buffer,
                              .shift = coefficients.shift.buffer,
                              .d_in = unwritten(options.dtype, nchw(extent_)),
                              .by_products = options.by_products};
    if (!options.by_products) {
      data.norm_in = norm_in;
      data.scale_shift = apply.scale_shift;
      data.mean = values(DType::f32, {c}, 6, 0.25);
      data.inv_std = values(DType::f32, {c}, 7, 0.25, 1);
      data.scale = values(DType::f32, {c}, 8, 0.25, 1);
      data.d_scale = unwritten(DType::f32, {c});
      data.d_bias = unwritten(DType::f32, {c});
      data.coefficients = unwritten(DType::f32, {3, c});
    }
    made_.add(apply, kFront);
    made_.add(gram, kConv);
    made_.add(statistics, kEnd);
    made_.add(forward, kConv);
    made_.add(products, kConv);
    made_.add(coefficients, kConv);
    made_.add(data, kConv);
    for (Instruction& instruction : made_.program.instructions)  // the most that a library may take
      instruction.workspace_bytes = std::size_t{8} << 20;
  }

  std::unique_ptr<CheckedProgram> start(Device& device) const {
    auto program = std::make_unique<CheckedProgram>(device, made_.graph, made_.rule, made_.program);
    for (const auto& [id, values] : written_) program->write(id, values);
    return program;
  }

 private:
  // Values: the batch, the front norm's input and output, the convolution's output, the block's, the
  // shortcut.
  static Graph graph_of(const Shape& extent, const Shape& wide) {
    Graph graph;
    graph.values = {{"images", {extent.n, 1, 1, 3}},
                    {"in", extent},
                    {"a", extent},
                    {"x", wide},
                    {"out", wide},
                    {"shortcut", wide}};
    graph.parameters = {{.name = "weight", .dims = {wide.c, extent.c, 1, 1}},
                        {.name = "front.scale", .dims = {extent.c}},
                        {.name = "front.bias", .dims = {extent.c}},
                        {.name = "scale", .dims = {wide.c}},
                        {.name = "bias", .dims = {wide.c}}};
    graph.statistics = {
        {"front.mean", extent.c}, {"front.variance", extent.c}, {"mean", wide.c}, {"variance", wide.c}};
    graph.ops = {BatchNorm{.name = "front",
                           .in = 1,
                           .out = 2,
                           .scale = 1,
                           .bias = 2,
                           .running_mean = 0,
                           .running_variance = 1,
                           .activation = Activation::relu},
                 Conv{.name = "conv", .in = 2, .out = 3, .weight = 0},
                 BatchNorm{.name = "norm",
                           .in = 3,
                           .out = 4,
                           .residual = 5,
                           .scale = 3,
                           .bias = 4,
                           .running_mean = 2,
                           .running_variance = 3,
                           .activation = Activation::relu,
                           .momentum = 0.25}};
    return graph;
  }

  void add_parameters() {
    const auto inputs = static_cast<std::size_t>(extent_.c);
    for (ParameterId p = 0; p < made_.graph.parameters.size(); ++p) {
      const Parameter& parameter = made_.graph.parameters[p];
      Doubles numbers = normal_values(DType::f32, static_cast<std::size_t>(parameter.elements()), 20 + p);
      const bool is_weight = p == 0, is_scale = p == 3;
      if (is_weight) {
        for (double& number : numbers) number *= options_.weight / std::sqrt(static_cast<double>(inputs));
        for (std::size_t c = 0; c < inputs; ++c) numbers[inputs + c] = 0;
        if (options_.weight <= 1)
          for (std::size_t c = 0; c < inputs; ++c) numbers[3 * inputs + c] *= 0x1p-8;
        for (std::size_t c = 1; c < inputs; ++c) numbers[2 * inputs + c] = 0;
      }
      if (is_scale) {
        for (double& number : numbers) number = options_.is_scale_zero ? 0 : 1 + 0.25 * number;
        numbers[0] = 0;
        numbers[1] *= 0x1p-6, numbers[2] *= 0x1p-6;  // whose deviation is 0
      }
      made_.program.tensors.parameters[p].master = written(DType::f32, parameter.dims, numbers);
    }
    for (const Statistic& statistic : made_.graph.statistics)
      made_.program.tensors.statistics.push_back(written(
          DType::f32, {statistic.channels}, Doubles(static_cast<std::size_t>(statistic.channels), 0.5)));
  }
  BufferId master(ParameterId p) const { return made_.program.tensors.parameters[p].master; }

  BufferId unwritten(DType dtype, std::vector<std::int64_t> dims) {
    return made_.add(dtype, std::move(dims), false);
  }
  BufferId written(DType dtype, std::vector<std::int64_t> dims, Doubles numbers) {
    const BufferId id = made_.add(dtype, std::move(dims));
    written_.emplace_back(id, std::move(numbers));
    return id;
  }
  // Normal values.
  BufferId values(DType dtype, std::vector<std::int64_t> dims, std::uint64_t seed, double deviation = 1,
                  double mean = 0) {
    std::size_t count = 1;
    for (const std::int64_t dim : dims) count *= static_cast<std::size_t>(dim);
    Doubles numbers = normal_values(dtype, count, seed);
    for (double& number : numbers) number = rounded(dtype, mean + deviation * number);
    return written(dtype, std::move(dims), std::move(numbers));
  }

  Options options_;
  Shape extent_, wide_;
  HandMade made_;
  std::vector<std::pair<BufferId, Doubles>> written_;
};

class GpuBlockEnds : public Conformance {
 protected:
  // Pixels: fewer than a tile of 128, a bit more than one, several; never a multiple of it. Channels: blocks
  // of the statistics have 4 rows, from 256 channels on 8, from 512 on 16; 192 channels leave threads over.
  static std::vector<Shape> extents() {
    return {{1, 1, 1, 64},  {1, 5, 5, 64},  {3, 7, 7, 64},  {5, 10, 10, 64}, {1, 7, 7, 128},
            {3, 7, 7, 128}, {1, 5, 5, 192}, {1, 5, 5, 256}, {3, 7, 7, 256},  {1, 2, 2, 512}};
  }
  static void check(const BlockEnd::Options& options) {
    const Shape& extent = options.extent;
    SCOPED_TRACE(testing::Message() << name_of(options.dtype) << " " << extent.n << " x " << extent.h << " x "
                                    << extent.w << " x " << extent.c << ", gradient " << options.gradient
                                    << ", weight " << options.weight
                                    << (options.by_products ? ", by products" : "")
                                    << (options.tf32 ? ", tf32" : "")
                                    << (options.normalised_shortcut ? ", normalized shortcut" : ""));
    const auto program = BlockEnd(options).start(*device());
    for (InstructionId id = 0; id < kPlaces; ++id) program->check(id);
  }
  static constexpr DType kHalf[]{DType::f16, DType::bf16};
  static constexpr std::pair<DType, bool> kByProducts[]{
      {DType::f32, false}, {DType::f32, true}, {DType::f16, false}};
};

TEST_F(GpuBlockEnds, OfAllSizes) {
  for (const DType dtype : kHalf)
    for (const Shape& extent : extents())
      check({.dtype = dtype, .extent = extent, .normalised_shortcut = extent.n % 2 == 0 || extent.h == 7});
}

TEST_F(GpuBlockEnds, WithEitherShortcutAndBiasGradient) {
  for (const DType dtype : kHalf)
    for (const bool normalized : {false, true})
      for (const bool has_d_bias : {false, true})
        check({.dtype = dtype,
               .extent = {3, 7, 7, 128},
               .normalised_shortcut = normalized,
               .has_d_bias = has_d_bias});
}

// In f32, and in f16 on GPUs before Ampere. Masks of a library's products have rows of 128 bits.
TEST_F(GpuBlockEnds, ByALibrarysProducts) {
  for (const auto& [dtype, tf32] : kByProducts)
    for (const Shape& extent : {Shape{1, 5, 5, 64}, {3, 7, 7, 128}, {1, 7, 7, 256}})
      for (const bool normalized : {false, true})
        check({.dtype = dtype,
               .extent = extent,
               .normalised_shortcut = normalized,
               .by_products = true,
               .tf32 = tf32});
}

TEST_F(GpuBlockEnds, ByALibrarysProductsWithSmallAndLargeGradientsAndWeights) {
  for (const auto& [dtype, tf32] : kByProducts) {
    BlockEnd::Options options{.dtype = dtype, .extent = {3, 7, 7, 64}, .by_products = true, .tf32 = tf32};
    for (const int exponent : {-20, 10}) {
      options.gradient = std::ldexp(1.0, exponent);
      check(options);
    }
    options.gradient = 1;
    for (const double weight : {0x1p-6, 0x1p6}) {
      options.weight = weight;
      check(options);
    }
  }
}

// Tensor cores chop what TF32 has no bits for: there must be nothing to chop.
TEST_F(GpuBlockEnds, RoundTheFactorsOfTf32) {
  const auto program =
      BlockEnd({.dtype = DType::f32, .extent = {3, 7, 7, 64}, .by_products = true, .tf32 = true})
          .start(*device());
  for (InstructionId id = 0; id < kPlaces; ++id) program->run(id);
  const std::vector<Instruction>& instructions = program->program().instructions;
  const auto& statistics = *instructions[kStatistics].as<ProductNormStatistics>();
  const auto& coefficients = *instructions[kCoefficients].as<ProductNormBackward>();
  for (const BufferId id : {instructions[kApply].as<BatchNormApply>()->out.buffer, statistics.scaled.buffer,
                            statistics.scaled_transposed.buffer, coefficients.factors.buffer})
    for (const double value : program->held(id))
      ASSERT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(value)) & 0x1fffU, 0U)
          << program->program().buffers[id].name << " " << value;
}

// The factors of d_a need their power of two.
TEST_F(GpuBlockEnds, OfSmallAndLargeGradients) {
  for (const DType dtype : kHalf)
    for (const int exponent : {-20, -10, 10})
      for (const std::int64_t channels : {64, 256})
        check({.dtype = dtype, .extent = {3, 7, 7, channels}, .gradient = std::ldexp(1.0, exponent)});
}

// Norms leave weights free to shrink and to grow: the power of two depends on them, too.
TEST_F(GpuBlockEnds, OfSmallAndLargeWeights) {
  for (const DType dtype : kHalf)
    for (const double weight : {0x1p-6, 0x1p6})
      check({.dtype = dtype, .extent = {3, 7, 7, 64}, .weight = weight});
}

// The last norm of a block starts with this scale: x has no effect, and its gradient is 0.
TEST_F(GpuBlockEnds, OfAScaleOfZero) {
  for (const DType dtype : kHalf)
    for (const double gradient : {0.0, 1.0})
      check({.dtype = dtype, .extent = {3, 7, 7, 64}, .gradient = gradient, .is_scale_zero = true});
}

// An overflow must reach the output in forward and the gradients in backward.
TEST_F(GpuBlockEnds, LetANotANumberThrough) {
  for (const bool by_products : {false, true}) {
    const DType dtype = by_products ? DType::f32 : DType::f16;
    const auto program =
        BlockEnd({.dtype = dtype, .extent = {3, 7, 7, 64}, .by_products = by_products}).start(*device());
    const auto run_to = [&](InstructionId last) {
      for (InstructionId id = 0; id <= last; ++id) program->run(id);
    };
    const std::vector<Instruction>& instructions = program->program().instructions;
    const BufferId gradient = instructions[kProducts].as<ChannelProducts>()->left;
    Doubles numbers = program->held(gradient);
    numbers[0] = std::nan("");
    program->write(gradient, numbers);
    run_to(kData);
    EXPECT_TRUE(
        std::isnan(program->held(instructions[kCoefficients].as<ProductNormBackward>()->d_weight)[0]));
    EXPECT_TRUE(std::ranges::any_of(program->held(instructions[kData].as<BlockEndBackwardData>()->d_in),
                                    [](double value) { return std::isnan(value); }));
    const BufferId in = instructions[kApply].as<BatchNormApply>()->in;
    numbers = program->held(in);
    numbers[0] = std::nan("");
    program->write(in, numbers);
    run_to(kForward);
    EXPECT_TRUE(std::isnan(program->held(instructions[kForward].as<BlockEndForward>()->out)[0]));
  }
}

// On every device, in whatever order threads and blocks run.
TEST_F(GpuBlockEnds, RepeatBitForBit) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    const auto program =
        BlockEnd({.dtype = dtype, .extent = {5, 10, 10, 128}, .by_products = dtype == DType::f32})
            .start(*device());
    for (InstructionId id = 0; id < kPlaces; ++id) {
      const Instruction& instruction = program->program().instructions[id];
      const auto results = [&] {
        program->run(id);
        std::vector<Doubles> made;
        for (const BufferUse& use : instruction.uses())
          if (use.access == Access::write) made.push_back(program->held(use.buffer));
        return made;
      };
      const std::vector<Doubles> first = results();
      for (int i = 0; i < 2; ++i) EXPECT_EQ(results(), first) << instruction.kind();
    }
  }
}

}  // namespace
}  // namespace plumb
