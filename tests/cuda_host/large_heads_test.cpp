// Margin heads of 100 million classes, tested like large_sizes_test.cpp.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/own/margin_loss.h"
#include "kernels/cuda/own/optimizer.h"
#include "kernels/device.h"
#include "tests/cuda_host/corner_blocks.h"
#include "tests/cuda_host/sparse_tensor.h"

namespace plumb::cuda {
namespace {

constexpr std::int64_t kClasses = 100'000'000, kEmbedding = 512, kHeadImages = 64;

class LargeHeads : public CornerBlocks {};

std::int32_t* integers(SparseTensor& tensor) {
  return reinterpret_cast<std::int32_t*>(tensor.data());
}

TEST_F(LargeHeads, RowsOfAllCentresReachTheLastOne) {
  SparseTensor rows(DType::f16, kClasses * kEmbedding), d_rows(DType::f16, kClasses * kEmbedding),
      inverse_norms(DType::f32, kClasses);
  rows.set_from_end(0, 2);
  launch_class_norms(DType::f16, rows.data(), nullptr, inverse_norms.floats(), kClasses, kEmbedding, nullptr);
  EXPECT_EQ(inverse_norms.from_end(0), 0.5F);

  d_rows.set_from_end(0, 5);  // along the row: projected out
  d_rows.set_from_end(1, 7);
  launch_project_rows(DType::f16, d_rows.data(), rows.data(), inverse_norms.floats(), kClasses, kEmbedding,
                      nullptr);
  EXPECT_EQ(d_rows.from_end(0), 0);
  EXPECT_EQ(d_rows.from_end(1), 7);
}

TEST_F(LargeHeads, SampledRowsMayBeTheLastOnes) {
  SparseTensor weight(DType::f32, kClasses * kEmbedding), momentum(DType::f32, kClasses * kEmbedding),
      rows(DType::f32, 8 * kEmbedding);
  std::vector<std::int32_t> samples(8, static_cast<std::int32_t>(kClasses - 1));
  const std::int32_t count = 8;
  weight.set_from_end(0, 2);
  launch_margin_gather(
      {.samples = samples.data(), .sample_count = &count, .weight = weight.floats(), .rows = rows.data()}, 8,
      kEmbedding, nullptr);
  EXPECT_EQ(rows.from_end(0), 2);

  const UpdatedRows updated{.master = weight.floats(),
                            .momentum = momentum.floats(),
                            .gradient = rows.data(),
                            .samples = samples.data() + 7,
                            .sample_count = &count,
                            .capacity = 1,
                            .columns = kEmbedding};
  State state{};
  state.step.learning_rate = 1;
  state.step.loss_scale = state.step.gradient_scale = 1;
  rows.set(kEmbedding - 1, 1.5F);
  UpdateRule rule;
  launch_update_rows(rule, updated, &state, nullptr, nullptr);
  EXPECT_EQ(weight.from_end(0), 0.5F);
}

TEST_F(LargeHeads, SamplesAreDrawnFromAllClasses) {
  constexpr std::int64_t kCapacity = kClasses / 10;
  SparseTensor samples(DType::f32, kCapacity), columns(DType::f32, kHeadImages),
      workspace(DType::f32,
                static_cast<std::int64_t>(sample_workspace_bytes(kHeadImages, kCapacity) / sizeof(float)));
  std::vector<std::int32_t> labels(kHeadImages, static_cast<std::int32_t>(kClasses - 1));
  std::int32_t count = 0;
  const State state{};
  launch_margin_sample({.labels = labels.data(),
                        .state = &state,
                        .samples = integers(samples),
                        .sample_count = &count,
                        .columns = integers(columns),
                        .workspace = integers(workspace),
                        .images = kHeadImages,
                        .capacity = kCapacity,
                        .own_classes = kClasses,
                        .least = kCapacity},
                       nullptr);
  EXPECT_EQ(count, kCapacity);
  EXPECT_EQ(integers(samples)[0], kClasses - 1);
  EXPECT_EQ(integers(columns)[kHeadImages - 1], 0);
}

TEST_F(LargeHeads, TheLossReachesTheLastProduct) {
  SparseTensor products(DType::f16, kHeadImages * kClasses), norms(DType::f32, kClasses),
      rows(DType::f32, 5 * kHeadImages);
  const std::int64_t shares = partition_margin(kHeadImages, kClasses, DType::f16).shares;
  std::vector<RowShare> held(static_cast<std::size_t>(shares * kHeadImages));
  const std::vector<std::int32_t> columns(kHeadImages, -1);
  products.set_from_end(0, 0.5F);
  norms.set_from_end(0, 2);
  const MarginLogits logits{.products = products.data(),
                            .dtype = DType::f16,
                            .images = kHeadImages,
                            .classes = kClasses,
                            .class_inverse_norms = norms.floats(),
                            .columns = columns.data()};
  const MarginRows all{.local_max = rows.floats(),
                       .row_max = rows.floats() + kHeadImages,
                       .row_sums = rows.floats() + 2 * kHeadImages,
                       .target_factor = rows.floats() + 4 * kHeadImages};
  launch_margin_statistics(logits, {}, all, held.data(), nullptr);
  EXPECT_EQ(held.back().largest, 64);
  EXPECT_EQ(all.row_max[kHeadImages - 1], 64);

  State state{};
  state.step.loss_scale = kHeadImages;
  std::vector<IterationRecord> records(kMetricsKept);
  all.row_sums[kHeadImages - 1] = 1;
  launch_margin_gradient(logits, 64, all, {.first = 0, .count = kHeadImages}, &state, records.data(),
                         nullptr);
  EXPECT_EQ(products.from_end(0), 128);  // probability 1, times scale and norm
}

}  // namespace
}  // namespace plumb::cuda
