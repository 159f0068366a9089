// Backward norm instructions as in a Program, through their prepare functions: passes by operands present.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cuda_host/norm_instruction.h"

namespace plumb::cuda {
namespace {

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

}  // namespace
}  // namespace plumb::cuda
