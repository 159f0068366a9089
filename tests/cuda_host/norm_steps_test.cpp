// Norm instructions as in a Program, through their prepare functions: statistics, forward, all in NCHW.
#include <gtest/gtest.h>

#include "tests/cuda_host/norm_instruction.h"

namespace plumb::cuda {
namespace {

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
