// A norm's backward through the max pool behind it, on the emulated GPU, against loops in double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "kernels/cuda/norm_partition.h"
#include "kernels/cuda/pool.h"
#include "tests/cuda_host/bound_instruction.h"
#include "tests/cuda_host/norm_reference.h"

namespace plumb::cuda {
namespace {

// Odd and even extents, windows that padding cuts on every side, rows of fewer windows than a block has, more
// than one tile of channels, and more blocks than one combines at once.
constexpr Shape kShapes[] = {{2, 7, 9, 8},  {1, 8, 8, 64},  {3, 1, 1, 8},   {2, 1, 6, 16},   {5, 5, 2, 24},
                             {1, 6, 7, 72}, {2, 3, 4, 264}, {1, 65, 78, 8}, {1, 66, 65, 264}};

// Which pixel wins each window is drawn, and where scale and shift hold it back none does.
struct PooledInputs {
  PooledInputs(DType dtype, const Shape& in_shape)
      : shape(in_shape), rows((shape.h + 1) / 2), columns((shape.w + 1) / 2) {
    const auto channels = static_cast<std::size_t>(shape.c),
               outputs = static_cast<std::size_t>(shape.n * rows * columns * shape.c);
    x = norm_inputs(dtype, static_cast<std::size_t>(shape.n * shape.h * shape.w), channels, 31);
    scale = normal_values(DType::f32, channels, 32);
    scale_shift = normal_values(DType::f32, 2 * channels, 33);
    moments = norm_moments(x, channels);
    moments.mean = rounded(DType::f32, moments.mean);
    moments.inv_std = rounded(DType::f32, moments.inv_std);
    d_out = normal_values(dtype, outputs, 34);
    second = normal_values(dtype, outputs, 35);
    argmax.resize(outputs);
    winners.resize(outputs);
    pixels.resize(outputs);
    std::mt19937 random(36);
    for (std::size_t i = 0; i < outputs; ++i) {
      const auto window = static_cast<std::int64_t>(i / channels);
      const std::int64_t column = window % columns, row = window / columns % rows,
                         image = window / columns / rows;
      std::int64_t y = -1, place = 0, column_in = -1;
      while (y < 0 || y >= shape.h || column_in < 0 || column_in >= shape.w) {
        place = random() % 9;
        y = 2 * row - 1 + place / 3, column_in = 2 * column - 1 + place % 3;
      }
      const std::size_t c = i % channels;
      pixels[i] = static_cast<std::size_t>((image * shape.h + y) * shape.w + column_in) * channels + c;
      winners[i] = x[pixels[i]];
      const bool passes = scale_shift[c] * winners[i] + scale_shift[channels + c] > 0;
      argmax[i] = passes ? static_cast<double>(place) : kNoWinner;
    }
  }
  Values gradient(bool two) const {
    Values sums(x.size());
    for (std::size_t i = 0; i < argmax.size(); ++i)
      if (argmax[i] != kNoWinner) sums[pixels[i]] += d_out[i] + (two ? second[i] : 0);
    return sums;
  }

  Shape shape;
  std::int64_t rows, columns;
  Values x, scale, scale_shift, d_out, second, argmax, winners;
  std::vector<std::size_t> pixels;  // that won, by output
  NormMoments moments;
};

struct PooledRun {
  Values d_in, d_scale, d_bias;
  bool operator==(const PooledRun&) const = default;
};

PooledRun run_backward(DType dtype, const PooledInputs& inputs, bool two) {
  Graph graph;
  graph.values = {{"in", inputs.shape}};
  graph.ops = {BatchNorm{.activation = Activation::relu}};
  BoundInstruction bound(std::move(graph));
  const NormPartition partition = partition_pooled(inputs.shape);
  const auto channels = static_cast<std::size_t>(inputs.shape.c);
  BatchNormPoolBackward norm{
      .in = bound.add(dtype, inputs.x),
      .winners = bound.add(dtype, inputs.winners),
      .argmax = bound.add(DType::u8, inputs.argmax),
      .d_out = bound.add(dtype, inputs.d_out),
      .scale = bound.add(DType::f32, inputs.scale),
      .mean = bound.add(DType::f32, inputs.moments.mean),
      .inv_std = bound.add(DType::f32, inputs.moments.inv_std),
      .scale_shift = bound.add(DType::f32, inputs.scale_shift),
      .d_in = bound.add(dtype, inputs.x.size()),
      .d_scale = bound.add(DType::f32, channels),
      .d_bias = bound.add(DType::f32, channels),
      .counters = bound.add(DType::i32, Values(static_cast<std::size_t>(norm_counters(partition))))};
  if (two) norm.second_d_out = bound.add(dtype, inputs.second);
  bound.run(norm, 2);
  EXPECT_EQ(bound.instruction.workspace_bytes, NormWorkspace{}.bytes(partition));
  return {bound.values(norm.d_in), bound.values(norm.d_scale), bound.values(norm.d_bias)};
}

TEST(NormPoolBackward, FollowsTheFormula) {
  for (const DType dtype : kStorageTypes) {
    for (const Shape& shape : kShapes) {
      const PooledInputs inputs(dtype, shape);
      for (const bool two : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {}x{}x{}x{}, {}", name_of(dtype), shape.n, shape.h, shape.w, shape.c,
                                 two ? "two gradients" : "one"));
        const Values gradient = inputs.gradient(two);
        const PooledRun run = run_backward(dtype, inputs, two);
        const NormGradients wanted = norm_gradients(inputs.x, gradient, inputs.moments, inputs.scale);
        expect_close(run.d_bias, wanted.d_bias, DType::f32, 4, wanted.largest_sum);
        expect_close(run.d_scale, wanted.d_scale, DType::f32, 16, wanted.largest_sum);
        const double magnitude = largest(inputs.scale) * largest(inputs.moments.inv_std) * largest(gradient);
        expect_close(run.d_in, wanted.d_in, dtype, dtype == DType::f32 ? 32 : 1,
                     magnitude / (dtype == DType::f32 ? 1 : 4));
      }
    }
  }
}

TEST(NormPoolBackward, RepeatsBitForBitInWhateverOrderThreadsAndBlocksRun) {
  const PooledInputs inputs(DType::f16, {1, 66, 65, 264});
  const PooledRun first = run_backward(DType::f16, inputs, true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run_backward(DType::f16, inputs, true), first);
}

TEST(NormPoolBackward, CountsAllPixelsForTheMeansOfItsSums) {
  const NormPartition partition = partition_pooled({2, 7, 9, 8});
  EXPECT_EQ(partition.steps, 2 * 4 * 5);
  EXPECT_EQ(partition.elements_per_channel, 2 * 7 * 9);
}

}  // namespace
}  // namespace plumb::cuda
