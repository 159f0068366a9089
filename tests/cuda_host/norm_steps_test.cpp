// Norm instructions as in a Program, through their prepare functions: operand order, and the passes that
// follow from the operands present.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/norm_partition.h"
#include "tests/cuda_host/bound_instruction.h"
#include "tests/cuda_host/norm_reference.h"

namespace plumb::cuda {
namespace {

constexpr DType kHalf = DType::f16;
constexpr std::int64_t kImages = 3, kHeight = 5, kWidth = 7, kChannels = 24;
constexpr std::size_t kPixels = kImages * kHeight * kWidth;
constexpr std::size_t kElements = kPixels * kChannels;

BoundInstruction norm_instruction(Activation activation) {
  Graph graph;
  graph.values = {{"in", {kImages, kHeight, kWidth, kChannels}}};
  graph.ops = {BatchNorm{.activation = activation, .epsilon = kNormEpsilon, .momentum = 0.25}};
  return BoundInstruction(std::move(graph));
}

Values floats(std::uint64_t seed) {
  return normal_values(DType::f32, kChannels, seed);
}
Values halves(std::uint64_t seed) {
  return normal_values(kHalf, kElements, seed);
}
Values bits_as_values(const Values& values) {
  const std::vector<std::uint8_t> bits = bits_of_positive(values);
  return {bits.begin(), bits.end()};
}

BufferId add_counters(BoundInstruction& instruction) {
  const NormPartition partition = partition_norm(kPixels, kChannels);
  return instruction.add(DType::i32, Values(static_cast<std::size_t>(norm_counters(partition))));
}

BatchNormMoments add_moments(BoundInstruction& instruction) {
  return {.scale = instruction.add(DType::f32, floats(1)),
          .bias = instruction.add(DType::f32, floats(2)),
          .running_mean = instruction.add(DType::f32, Values(kChannels, 1.0)),
          .running_variance = instruction.add(DType::f32, Values(kChannels, 2.0)),
          .scale_shift = instruction.add(DType::f32, 2 * kChannels),
          .mean = instruction.add(DType::f32, kChannels),
          .inv_std = instruction.add(DType::f32, kChannels)};
}

void expect_moments(const BoundInstruction& instruction, const BatchNormMoments& moments,
                    const NormMoments& wanted) {
  expect_close(instruction.values(moments.mean), wanted.mean, DType::f32, 16);
  expect_close(instruction.values(moments.inv_std), wanted.inv_std, DType::f32, 32);
  Values mean, variance, factors(2 * kChannels);
  for (std::size_t c = 0; c < kChannels; ++c) {
    mean.push_back(0.75 * 1 + 0.25 * wanted.mean[c]);
    variance.push_back(0.75 * 2 + 0.25 * wanted.variance[c] * kPixels / (kPixels - 1.0));
    factors[c] = floats(1)[c] * wanted.inv_std[c];
    factors[kChannels + c] = floats(2)[c] - wanted.mean[c] * factors[c];
  }
  expect_close(instruction.values(moments.running_mean), mean, DType::f32, 16);
  expect_close(instruction.values(moments.running_variance), variance, DType::f32, 32);
  expect_close(instruction.values(moments.scale_shift), factors, DType::f32, 64, largest(factors));
}

TEST(NormInstructions, StatisticsAreOfTheInput) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  BoundInstruction bound = norm_instruction(Activation::relu);
  const BatchNormStatistics norm{
      .in = bound.add(kHalf, in), .moments = add_moments(bound), .counters = add_counters(bound)};
  bound.run(norm);
  expect_moments(bound, norm.moments, norm_moments(in, kChannels));
  EXPECT_EQ(bound.instruction.workspace_bytes, NormWorkspace{}.bytes(partition_norm(kPixels, kChannels)));
}

TEST(NormInstructions, FinalizeTakesSumsInPlaceOfTheInput) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  Values sums(2 * kChannels);
  for (std::size_t i = 0; i < kElements; ++i) {
    sums[i % kChannels] += in[i];
    sums[kChannels + i % kChannels] += in[i] * in[i];
  }
  BoundInstruction bound = norm_instruction(Activation::relu);
  const BatchNormFinalize norm{.sums = bound.add(DType::f32, sums), .moments = add_moments(bound)};
  bound.run(norm);
  expect_moments(bound, norm.moments, norm_moments(in, kChannels));
}

// factors[0] * values + factors[1].
Values on_line(const Values& values, const Values& factors) {
  Values line(kElements);
  for (std::size_t i = 0; i < kElements; ++i)
    line[i] = factors[i % kChannels] * values[i] + factors[kChannels + i % kChannels];
  return line;
}

BatchNormApply add_apply(BoundInstruction& instruction, const Values& in, const Values& factors) {
  return {.in = instruction.add(kHalf, in),
          .scale_shift = instruction.add(DType::f32, factors),
          .out = instruction.add(kHalf, kElements)};
}

TEST(NormInstructions, ApplyAddsTheResidualAndKeepsTheMask) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3), residual = halves(4);
  const Values factors = normal_values(DType::f32, 2 * kChannels, 9);
  const Values of_residual = normal_values(DType::f32, 2 * kChannels, 10);
  enum class Residual { none, stored, raw };
  for (const Residual which : {Residual::none, Residual::stored, Residual::raw}) {
    BoundInstruction bound = norm_instruction(Activation::relu);
    BatchNormApply norm = add_apply(bound, in, factors);
    norm.relu_mask = bound.add(DType::u8, kElements / 8);
    if (which != Residual::none) norm.residual = bound.add(kHalf, residual);
    if (which == Residual::raw) norm.residual_scale_shift = bound.add(DType::f32, of_residual);
    bound.run(norm);
    Values wanted = on_line(in, factors);
    if (which == Residual::stored) wanted = sum(wanted, residual);
    if (which == Residual::raw) wanted = sum(wanted, on_line(residual, of_residual));
    expect_close(bound.values(norm.out), relu(wanted), kHalf, 1.1, 0.1);
    EXPECT_EQ(bound.values(*norm.relu_mask), bits_as_values(bound.values(norm.out)));
  }
}

TEST(NormInstructions, ApplyWithoutReLULetsAllThrough) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  const Values factors = normal_values(DType::f32, 2 * kChannels, 9);
  BoundInstruction bound = norm_instruction(Activation::none);
  const BatchNormApply norm = add_apply(bound, in, factors);
  bound.run(norm);
  expect_close(bound.values(norm.out), on_line(in, factors), kHalf, 1.1, 0.1);
}

// Mandatory operands only. d_in_there: initial d_in to accumulate into, if any.
BatchNormBackward add_backward(BoundInstruction& instruction, const Values& in,
                               const Values& d_in_there = {}) {
  const NormMoments moments = norm_moments(in, kChannels);
  const auto d_in = [&]() -> WriteOrAdd {
    if (d_in_there.empty()) return instruction.add(kHalf, kElements);
    return {instruction.add(kHalf, d_in_there), true};
  };
  return {.in = instruction.add(kHalf, in),
          .d_out = instruction.add(kHalf, halves(5)),
          .scale = instruction.add(DType::f32, floats(1)),
          .bias = instruction.add(DType::f32, floats(2)),
          .mean = instruction.add(DType::f32, moments.mean),
          .inv_std = instruction.add(DType::f32, moments.inv_std),
          .d_in = d_in(),
          .d_scale = instruction.add(DType::f32, kChannels),
          .d_bias = instruction.add(DType::f32, kChannels),
          .counters = add_counters(instruction)};
}
// Mask from stored bits, or from the output itself.
void set_mask(BoundInstruction& instruction, BatchNormBackward& norm, const Values& out, bool bits) {
  if (bits)
    norm.relu_mask = instruction.add(DType::u8, bits_as_values(out));
  else
    norm.out = instruction.add(kHalf, out);
}
void expect_gradients(const BoundInstruction& instruction, const BatchNormBackward& norm, const Values& in,
                      const Values& gradient, double units = 1.1) {
  const NormGradients wanted = norm_gradients(in, gradient, norm_moments(in, kChannels), floats(1));
  expect_close(instruction.values(norm.d_bias), wanted.d_bias, DType::f32, 4, wanted.largest_sum);
  expect_close(instruction.values(norm.d_scale), wanted.d_scale, DType::f32, 16, wanted.largest_sum);
  expect_close(instruction.values(norm.d_in), wanted.d_in, kHalf, units);
}

TEST(NormInstructions, BackwardWithoutReLUTakesOneOrTwoGradients) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  for (const bool two : {false, true}) {
    BoundInstruction bound = norm_instruction(Activation::none);
    BatchNormBackward norm = add_backward(bound, in);
    if (two) norm.second_d_out = bound.add(kHalf, halves(6));
    bound.run(norm);
    expect_gradients(bound, norm, in, two ? sum(halves(5), halves(6)) : halves(5));
  }
}

TEST(NormInstructions, BackwardReadsBitsOrTheOutputAsMask) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3), out = relu(halves(7));
  for (const bool bits : {false, true}) {
    BoundInstruction bound = norm_instruction(Activation::relu);
    BatchNormBackward norm = add_backward(bound, in);
    set_mask(bound, norm, out, bits);
    bound.run(norm);
    expect_gradients(bound, norm, in, where(out, halves(5)));
  }
}

TEST(NormInstructions, BackwardReadsTheFactorsAsMask) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  const Values factors = normal_values(kHalf, 2 * kChannels, 9);
  BoundInstruction bound = norm_instruction(Activation::relu);
  BatchNormBackward norm = add_backward(bound, in);
  norm.scale_shift = bound.add(kHalf, factors);
  bound.run(norm);
  expect_gradients(bound, norm, in, where(relu(on_line(in, factors)), halves(5)));
}

TEST(NormInstructions, BackwardGivesTheResidualItsGradient) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3), out = relu(halves(7));
  for (const bool bits : {false, true}) {
    BoundInstruction bound = norm_instruction(Activation::relu);
    BatchNormBackward norm = add_backward(bound, in);
    set_mask(bound, norm, out, bits);
    norm.second_d_out = bound.add(kHalf, halves(6));
    norm.d_residual = bound.add(kHalf, kElements);
    bound.run(norm);
    const Values gradient = where(out, sum(halves(5), halves(6)));
    expect_close(bound.values(*norm.d_residual), gradient, kHalf, 1.01, 0.1);
    expect_gradients(bound, norm, in, gradient, 6);  // d_residual is rounded in between
  }
}

TEST(NormInstructions, BackwardOfAPairIsThatOfBothNorms) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3),
               shortcut_in = norm_inputs(kHalf, kPixels, kChannels, 4), out = relu(halves(7));
  enum class Mask { none, bits, output };
  for (const Mask mask : {Mask::none, Mask::bits, Mask::output}) {
    for (const bool two : {false, true}) {
      BoundInstruction bound = norm_instruction(mask == Mask::none ? Activation::none : Activation::relu);
      const BatchNormBackward norm = add_backward(bound, in), shortcut = add_backward(bound, shortcut_in);
      const auto of_pair = [](const BatchNormBackward& one) {
        return BatchNormPairBackward::Norm{.in = one.in,
                                           .scale = one.scale,
                                           .mean = one.mean,
                                           .inv_std = one.inv_std,
                                           .d_in = BufferId(one.d_in),
                                           .d_scale = one.d_scale,
                                           .d_bias = one.d_bias};
      };
      BatchNormPairBackward pair{.norm = of_pair(norm),
                                 .shortcut = of_pair(shortcut),
                                 .d_out = norm.d_out,
                                 .counters = norm.counters.value()};
      if (two) pair.second_d_out = bound.add(kHalf, halves(6));
      if (mask == Mask::bits) pair.relu_mask = bound.add(DType::u8, bits_as_values(out));
      if (mask == Mask::output) pair.out = bound.add(kHalf, out);
      bound.run(pair, 2);
      Values gradient = two ? sum(halves(5), halves(6)) : halves(5);
      if (mask != Mask::none) gradient = where(out, gradient);
      const double units = two || mask != Mask::none ? 6 : 1.1;  // the sum is rounded in between
      expect_gradients(bound, norm, in, gradient, units);
      expect_gradients(bound, shortcut, shortcut_in, gradient, units);
      EXPECT_EQ(bound.instruction.workspace_bytes, kPairWorkspace.bytes(partition_norm(kPixels, kChannels)));
    }
  }
}

TEST(NormInstructions, BackwardApplyUsesTheCoefficientsOfAConvolution) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3), d_activated = halves(5);
  const Values coefficients = normal_values(DType::f32, 3 * kChannels, 8);
  BoundInstruction bound = norm_instruction(Activation::relu);
  const BatchNormBackwardApply norm{.d_activated = bound.add(kHalf, d_activated),
                                    .in = bound.add(kHalf, in),
                                    .coefficients = bound.add(DType::f32, coefficients),
                                    .d_in = bound.add(kHalf, kElements)};
  bound.run(norm);
  Values wanted(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    const double* c = &coefficients[i % kChannels];
    wanted[i] = c[0] * d_activated[i] + c[kChannels] * in[i] + c[2 * kChannels];
  }
  expect_close(bound.values(norm.d_in), wanted, kHalf, 1.1, 0.1);
}

// A PReLU's slopes: one per channel, or one for all.
const std::size_t kSlopes[] = {kChannels, 1};
double slope_at(const Values& slopes, std::size_t i) {
  return slopes[slopes.size() > 1 ? i % kChannels : 0];
}

TEST(NormInstructions, ApplyTakesThePReLUsSlope) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  const Values factors = normal_values(DType::f32, 2 * kChannels, 9);
  for (const std::size_t count : kSlopes) {
    const Values slopes = normal_values(DType::f32, count, 12);
    BoundInstruction bound = norm_instruction(Activation::prelu);
    BatchNormApply norm = add_apply(bound, in, factors);
    norm.slope = bound.add(DType::f32, slopes);
    bound.run(norm);
    Values wanted = on_line(in, factors);
    for (std::size_t i = 0; i < kElements; ++i) wanted[i] *= wanted[i] > 0 ? 1 : slope_at(slopes, i);
    expect_close(bound.values(norm.out), wanted, kHalf, 1.1, 0.1);
  }
}

TEST(NormInstructions, BackwardThroughAPReLUGivesTheGradientOfTheSlope) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  const Values factors = normal_values(DType::f32, 2 * kChannels, 9), line = on_line(in, factors);
  for (const std::size_t count : kSlopes) {
    const Values slopes = normal_values(DType::f32, count, 12);
    BoundInstruction bound = norm_instruction(Activation::prelu);
    BatchNormBackward norm = add_backward(bound, in);
    norm.scale_shift = bound.add(DType::f32, factors);
    norm.slope = bound.add(DType::f32, slopes);
    norm.d_slope = bound.add(DType::f32, count);
    bound.run(norm);
    Values gradient = halves(5), wanted(count), magnitudes(count);
    for (std::size_t i = 0; i < kElements; ++i) {
      if (line[i] > 0) continue;
      wanted[count > 1 ? i % kChannels : 0] += gradient[i] * line[i];
      magnitudes[count > 1 ? i % kChannels : 0] += std::abs(gradient[i] * line[i]);
      gradient[i] *= slope_at(slopes, i);
    }
    expect_gradients(bound, norm, in, gradient);
    expect_close(bound.values(*norm.d_slope), wanted, DType::f32, 8, largest(magnitudes));
    EXPECT_EQ(bound.instruction.workspace_bytes, kPreluWorkspace.bytes(partition_norm(kPixels, kChannels)));
  }
}

TEST(NormInstructions, BackwardWithoutReLUGivesTheResidualTheSumOfTwoGradients) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3);
  BoundInstruction bound = norm_instruction(Activation::none);
  BatchNormBackward norm = add_backward(bound, in);
  norm.second_d_out = bound.add(kHalf, halves(6));
  norm.d_residual = bound.add(kHalf, kElements);
  bound.run(norm);
  const Values gradient = sum(halves(5), halves(6));
  expect_close(bound.values(*norm.d_residual), gradient, kHalf, 1.01, 0.1);
  expect_gradients(bound, norm, in, gradient, 6);
}

TEST(NormInstructions, BackwardAddsToAGradientThatIsThere) {
  const Values in = norm_inputs(kHalf, kPixels, kChannels, 3), there = halves(8);
  BoundInstruction plain = norm_instruction(Activation::none), adding = norm_instruction(Activation::none);
  const BatchNormBackward alone = add_backward(plain, in), onto = add_backward(adding, in, there);
  plain.run(alone);
  adding.run(onto);
  expect_close(adding.values(onto.d_in), sum(plain.values(alone.d_in), there), kHalf, 2.1);
  EXPECT_EQ(adding.values(onto.d_scale), plain.values(alone.d_scale));
}

// In strict fp32: the tensors' order, counters and workspace.
TEST(NormInstructions, FollowTheLayoutOfTheProgram) {
  constexpr DType kFloat = DType::f32;
  const NormSize size{.pixels = kPixels, .channels = kChannels, .plane = kHeight * kWidth};
  const Values in = norm_inputs(kFloat, kPixels, kChannels, 3),
               residual = normal_values(kFloat, kElements, 4), d_out = normal_values(kFloat, kElements, 5),
               factors = normal_values(kFloat, 2 * kChannels, 9);
  const Values counters(static_cast<std::size_t>(norm_counters(size.partition())));
  const auto instruction = [] {
    BoundInstruction bound = norm_instruction(Activation::relu);
    bound.set_layout(TensorLayout::nchw);
    return bound;
  };
  BoundInstruction first = instruction();
  const BatchNormStatistics statistics{.in = first.add(kFloat, size.held(in)),
                                       .moments = add_moments(first),
                                       .counters = first.add(DType::i32, counters)};
  first.run(statistics);
  expect_moments(first, statistics.moments, norm_moments(in, kChannels));
  EXPECT_EQ(first.instruction.workspace_bytes, NormWorkspace{}.bytes(size.partition()));

  BoundInstruction second = instruction();
  const BatchNormApply apply{.in = second.add(kFloat, size.held(in)),
                             .scale_shift = second.add(DType::f32, factors),
                             .out = second.add(kFloat, kElements),
                             .residual = second.add(kFloat, size.held(residual))};
  second.run(apply);
  const Values out = size.read(second.values(apply.out));
  expect_close(out, relu(sum(on_line(in, factors), residual)), kFloat, 4, 4);

  BoundInstruction third = instruction();
  const NormMoments moments = norm_moments(in, kChannels);
  const BatchNormBackward backward{.in = third.add(kFloat, size.held(in)),
                                   .d_out = third.add(kFloat, size.held(d_out)),
                                   .scale = third.add(DType::f32, floats(1)),
                                   .bias = third.add(DType::f32, floats(2)),
                                   .mean = third.add(DType::f32, moments.mean),
                                   .inv_std = third.add(DType::f32, moments.inv_std),
                                   .d_in = third.add(kFloat, kElements),
                                   .d_scale = third.add(DType::f32, kChannels),
                                   .d_bias = third.add(DType::f32, kChannels),
                                   .out = third.add(kFloat, size.held(out)),
                                   .d_residual = third.add(kFloat, kElements),
                                   .counters = third.add(DType::i32, counters)};
  third.run(backward);
  const Values gradient = where(out, d_out);
  EXPECT_EQ(size.read(third.values(*backward.d_residual)), gradient);
  const NormGradients wanted = norm_gradients(in, gradient, moments, floats(1));
  expect_close(third.values(backward.d_bias), wanted.d_bias, kFloat, 4, wanted.largest_sum);
  expect_close(third.values(backward.d_scale), wanted.d_scale, kFloat, 16, wanted.largest_sum);
  expect_close(size.read(third.values(backward.d_in)), wanted.d_in, kFloat, 16);

  // The two norms of this pair have the same input, so their gradients are the same.
  BoundInstruction fourth = instruction();
  const auto norm = [&] {
    return BatchNormPairBackward::Norm{.in = fourth.add(kFloat, size.held(in)),
                                       .scale = fourth.add(DType::f32, floats(1)),
                                       .mean = fourth.add(DType::f32, moments.mean),
                                       .inv_std = fourth.add(DType::f32, moments.inv_std),
                                       .d_in = fourth.add(kFloat, kElements),
                                       .d_scale = fourth.add(DType::f32, kChannels),
                                       .d_bias = fourth.add(DType::f32, kChannels)};
  };
  const BatchNormPairBackward pair{.norm = norm(),
                                   .shortcut = norm(),
                                   .d_out = fourth.add(kFloat, size.held(d_out)),
                                   .out = fourth.add(kFloat, size.held(out)),
                                   .counters = fourth.add(DType::i32, counters)};
  fourth.run(pair);
  for (const auto& of_pair : {pair.norm, pair.shortcut}) {
    EXPECT_EQ(fourth.values(of_pair.d_in), third.values(backward.d_in));
    EXPECT_EQ(fourth.values(of_pair.d_scale), third.values(backward.d_scale));
  }
  EXPECT_EQ(fourth.instruction.workspace_bytes, kPairWorkspace.bytes(size.partition()));
}

}  // namespace
}  // namespace plumb::cuda
