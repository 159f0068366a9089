// Activations with more elements than 32 bits count (batch 4096 of ResNet-50 has 3.3e9). The emulated GPU
// runs the first and the last block of each launch over almost entirely zero memory. The last block's results
// for the last elements show that no size or index lost its upper bits.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/own/elementwise.h"
#include "kernels/cuda/own/layers.h"
#include "kernels/cuda/own/norm.h"
#include "kernels/device.h"
#include "tests/cuda_host/corner_blocks.h"
#include "tests/cuda_host/sparse_tensor.h"

namespace plumb::cuda {
namespace {

// ResNet-50's first activation at batch 5376: 4.3e9 elements.
constexpr std::int64_t kImages = 5376, kSide = 112, kChannels = 64, kPixels = kImages * kSide * kSide,
                       kElements = kPixels * kChannels;
constexpr std::int64_t kMostImages = 65535;

class LargeSizes : public CornerBlocks {};

TEST_F(LargeSizes, SumsAndCastsReachTheLastElement) {
  SparseTensor into(DType::f16, kElements), from(DType::f16, kElements), wide(DType::f32, kElements);
  into.set_from_end(0, 2);
  from.set_from_end(0, 3);
  launch_accumulate(DType::f16, into.data(), from.data(), into.elements(), nullptr);
  EXPECT_EQ(into.from_end(0), 5);
  launch_cast(DType::f16, into.data(), DType::f32, wide.data(), into.elements(), 2, nullptr);
  EXPECT_EQ(wide.from_end(0), 10);
}

TEST_F(LargeSizes, ColumnSumsReachTheLastRow) {
  constexpr std::int64_t kRows = 70'000, kColumns = 100'000;
  SparseTensor matrix(DType::f16, kRows * kColumns), sums(DType::f32, kColumns);
  matrix.set_from_end(0, 5);
  launch_column_sums(DType::f16, matrix.data(), sums.floats(), kRows, kColumns, nullptr);
  EXPECT_EQ(sums.from_end(0), 5);
}

void expect_last_image(std::int64_t channels_held) {
  const Shape shape{.n = kMostImages, .h = 160, .w = 160, .c = 3};
  SparseTensor bytes(DType::f16, shape.elements()), images(DType::f16, shape.elements() / 3 * channels_held);
  SparseTensor labels(DType::f32, shape.n), staged_labels(DType::f32, 2 * shape.n);
  auto* pixels = reinterpret_cast<std::uint8_t*>(bytes.data());  // of both halves
  pixels[2 * shape.elements() - 1] = 5;                          // the last channel of the last pixel
  const State state{.step = {.iteration = 1}};
  const ImageBatch batch{.images = images.data(),
                         .labels = reinterpret_cast<std::int32_t*>(labels.data()),
                         .shape = shape,
                         .held_channels = channels_held,
                         .dtype = DType::f16};
  launch_pack_batch({.pixels = pixels, .labels = reinterpret_cast<std::int32_t*>(staged_labels.data())}, {},
                    &state, batch, nullptr);
  const std::int64_t padding = channels_held - shape.c;
  EXPECT_EQ(images.from_end(padding), 5);
}

TEST_F(LargeSizes, BatchesReachTheLastImage) {
  expect_last_image(8);
  expect_last_image(4);
}

TEST_F(LargeSizes, SoftmaxReachesTheLastRow) {
  constexpr std::int64_t kRows = 4'500'000, kOutputs = 1000;
  SparseTensor logits(DType::f32, kRows * kOutputs), d_logits(DType::f32, kRows * kOutputs),
      labels(DType::f32, kRows), losses(DType::f32, kRows * 4);
  State state{};
  state.step.loss_scale = kRows;
  std::vector<IterationRecord> records(kMetricsKept);
  const SoftmaxOperands at{.logits = logits.floats(),
                           .labels = reinterpret_cast<const std::int32_t*>(labels.data()),
                           .d_logits = d_logits.data(),
                           .state = &state,
                           .row_losses = reinterpret_cast<RowLoss*>(losses.data()),
                           .records = records.data()};
  launch_softmax_loss(at, kRows, kOutputs, 0, nullptr);
  EXPECT_FLOAT_EQ(d_logits.from_end(0), 0.001F);
}

TEST_F(LargeSizes, NormsReachTheLastPixel) {
  constexpr DType dtype = DType::f16;
  const NormPartition partition = partition_norm(kPixels, kChannels);
  SparseTensor in(dtype, kElements), out(dtype, kElements), d_out(dtype, kElements), d_in(dtype, kElements),
      partials(DType::f32, std::int64_t{partition.step_blocks} * 2 * kChannels),
      scale_shift(DType::f32, 3 * kChannels);
  SparseTensor mask(DType::f16, kElements / 16 + 1);
  const std::int64_t in_last_block = partition.steps - partition.steps_before(partition.step_blocks - 1);
  in.set_from_end(0, 5);
  std::vector<float> statistics(8 * kChannels);
  const auto channel_values = [&](int i) { return statistics.data() + i * kChannels; };
  std::vector<unsigned> counters(static_cast<std::size_t>(norm_counters(partition)));
  const NormScratch scratch{partials.floats(), counters.data()};
  launch_norm_statistics(partition, dtype, in.data(), scratch,
                         {.scale = channel_values(0),
                          .bias = channel_values(1),
                          .running_mean = channel_values(2),
                          .running_variance = channel_values(3),
                          .mean = channel_values(4),
                          .inv_std = channel_values(5),
                          .scale_shift = reinterpret_cast<std::byte*>(channel_values(6))},
                         nullptr);
  EXPECT_FLOAT_EQ(partials.from_end(kChannels), 5.0F / static_cast<float>(in_last_block));

  scale_shift.set(kChannels - 1, 2);
  scale_shift.set(2 * kChannels - 1, 1);
  NormApply apply{.in = in.data(), .scale_shift = scale_shift.floats(), .out = out.data(), .relu = true};
  NormGradient gradient{.in = in.data(), .d_out = d_out.data()};
  gradient.mask = apply.mask = reinterpret_cast<std::uint8_t*>(mask.data());
  launch_norm_apply(partition, dtype, apply, nullptr);
  EXPECT_EQ(out.from_end(0), 11);
  EXPECT_EQ(apply.mask[kElements / 8 - 1], 0x80);

  d_out.set_from_end(0, 3);
  std::fill(counters.begin(), counters.end(), 0U);  // of blocks that didn't run
  launch_norm_backward_sums(partition, dtype, gradient, nullptr, scratch,
                            {.mean = scale_shift.floats() + kChannels}, {}, nullptr);
  EXPECT_EQ(partials.from_end(kChannels), 3);
  EXPECT_EQ(partials.from_end(0), 12);  // 3 * (5 - 1)

  scale_shift.set_from_end(0, 0.5F);
  launch_norm_backward_apply(partition, dtype, gradient, scale_shift.floats(), {.data = d_in.data()},
                             nullptr);
  EXPECT_EQ(d_in.from_end(0), 11.5F);  // 2 * 3 + 1 * 5 + 0.5

  // With the norm of a shortcut, whose input is `out`.
  SparseTensor d_shortcut(dtype, kElements), coefficients(DType::f32, 6 * kChannels),
      of_both(DType::f32, std::int64_t{partition.step_blocks} * 3 * kChannels);
  gradient.shortcut_in = out.data();
  std::fill(counters.begin(), counters.end(), 0U);
  launch_norm_backward_sums(partition, dtype, gradient, nullptr, {of_both.floats(), counters.data()},
                            {.mean = coefficients.floats()}, {.mean = scale_shift.floats() + kChannels},
                            nullptr);
  EXPECT_EQ(of_both.from_end(kChannels), 15);  // 3 * 5
  EXPECT_EQ(of_both.from_end(0), 30);          // 3 * (11 - 1)
  for (const int row : {3, 4, 5}) coefficients.set(row * kChannels + kChannels - 1, row == 5 ? 0.5F : 2);
  launch_norm_backward_apply(partition, dtype, gradient, coefficients.floats(),
                             {.data = d_in.data(), .shortcut = d_shortcut.data()}, nullptr);
  EXPECT_EQ(d_in.from_end(0), 0);
  EXPECT_EQ(d_shortcut.from_end(0), 28.5F);  // 2 * 3 + 2 * 11 + 0.5
}

TEST_F(LargeSizes, NormsBehindAMaxPoolReachTheLastPixel) {
  const Shape shape{.n = kImages, .h = kSide, .w = kSide, .c = kChannels};
  SparseTensor in(DType::f16, kElements), d_in(DType::f16, kElements), d_out(DType::f16, kElements / 4),
      argmax(DType::f16, kElements / 8), coefficients(DType::f32, 3 * kChannels);
  auto* const winners = reinterpret_cast<std::uint8_t*>(argmax.data());
  winners[kElements / 4 - 1] = 8;
  in.set_from_end(0, 5);
  d_out.set_from_end(0, 3);
  for (const int row : {0, 1, 2}) coefficients.set((row + 1) * kChannels - 1, row == 2 ? 0.5F : 2);
  launch_norm_pool_backward_apply(shape, DType::f16,
                                  {.in = in.data(), .d_out = d_out.data(), .argmax = winners},
                                  coefficients.floats(), d_in.data(), nullptr);
  EXPECT_EQ(d_in.from_end(0), 16.5F);  // 2 * 3 + 2 * 5 + 0.5
  EXPECT_EQ(d_in.from_end(kChannels), 0.5F) << "the pixel before";
}

TEST_F(LargeSizes, PoolsReachTheLastPixel) {
  const WindowShape shape{.n = kImages,
                          .h = kSide,
                          .w = kSide,
                          .c = kChannels,
                          .out_h = 56,
                          .out_w = 56,
                          .kernel = 3,
                          .stride = 2,
                          .padding = 1};
  SparseTensor in(DType::f16, kElements), out(DType::f16, kElements / 4), winners(DType::f16, kElements / 4),
      argmax(DType::f16, kElements / 8);
  auto* const places = reinterpret_cast<std::uint8_t*>(argmax.data());
  std::vector<float> scale_shift(2 * kChannels);
  scale_shift[kChannels - 1] = 2;
  in.set_from_end(0, 7);
  launch_max_pool_forward(DType::f16, shape, in.data(), scale_shift.data(), out.data(), places,
                          winners.data(), nullptr);
  EXPECT_EQ(out.from_end(0), 14);
  EXPECT_EQ(winners.from_end(0), 7);
  EXPECT_EQ(places[kElements / 4 - 1], 8);
}

TEST_F(LargeSizes, AveragesReachTheLastImage) {
  constexpr DType dtype = DType::f16;
  constexpr std::int64_t kWide = 2048, kSpots = 49;
  SparseTensor in(dtype, kMostImages * kSpots * kWide), mean(dtype, kMostImages * kWide);
  for (std::int64_t spot = 0; spot < kSpots; ++spot) in.set_from_end(spot * kWide, 2);
  const WindowShape shape{.n = kMostImages, .h = 7, .w = kSpots / 7, .c = kWide};
  launch_average_forward(dtype, shape, in.data(), mean.data(), nullptr);
  EXPECT_EQ(mean.from_end(0), 2);
  mean.set_from_end(0, 49);
  launch_average_backward(dtype, shape, mean.data(), in.data(), nullptr);
  EXPECT_EQ(in.from_end(0), 1);
  EXPECT_EQ(in.from_end((kSpots - 1) * kWide), 1);
}

TEST_F(LargeSizes, DropoutReachesTheLastImage) {
  const Shape shape{.n = kMostImages, .h = 40, .w = 40, .c = 64};
  SparseTensor in(DType::f16, shape.elements()), out(DType::f16, shape.elements());
  in.set_from_end(0, 5);
  const State state{};
  launch_dropout(DType::f16, shape, in.data(), out.data(), dropout_rule(1, "dropout", 0), &state, nullptr);
  EXPECT_EQ(out.from_end(0), 5);
}

}  // namespace
}  // namespace plumb::cuda
