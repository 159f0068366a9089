// Sizes beyond 32 bits: batch 4096 of ResNet-50, heads of 100 million classes. Described, planned and divided
// into thread blocks; tests/cuda_host/large_sizes_test.cpp tests the kernels.
#include <gtest/gtest.h>

#include <stdexcept>

#include "kernels/cuda/plan/blocks.h"
#include "kernels/cuda/plan/depthwise_shape.h"
#include "kernels/cuda/plan/margin_partition.h"
#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "models/arcface.h"
#include "models/resnet50.h"
#include "tests/kernels/live_bytes.h"

namespace plumb {
namespace {

constexpr std::int64_t kBatch = 4096;
constexpr std::int64_t kClasses = 100'000'000;

Program described(const Graph& graph, Precision precision, bool fuse) {
  return describe(graph, {.precision = precision, .load_batch_every_step = true, .fuse = fuse},
                  *find_target("h200"));
}
Graph resnet50(std::int64_t batch) {
  return make_resnet50({.batch = batch, .image_size = 224});
}

// f64 counts bytes exactly up to 2^53.
double bytes_of_elements(const Buffer& buffer) {
  double bytes = static_cast<double>(bytes_of(buffer.dtype));
  for (std::int64_t dim : buffer.dims) bytes *= static_cast<double>(dim);
  return bytes;
}

void expect_sound_plan(const Program& program) {
  const MemoryPlan plan = plan_memory(program);
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    const auto bytes = static_cast<double>(buffer.bytes), elements = bytes_of_elements(buffer);
    EXPECT_GE(bytes, elements) << buffer.name;
    EXPECT_LE(bytes, 8 * elements + 1024) << buffer.name;  // images are padded to 8 channels
    EXPECT_LE(static_cast<double>(plan.offsets[id]) + bytes, static_cast<double>(plan.arena_bytes))
        << buffer.name;
  }
  EXPECT_GE(plan.arena_bytes, largest_live_bytes(program));
}

TEST(CudaLargeSizes, Batch4096OfResNet50IsPlannedWithoutOverflow) {
  for (const bool fuse : {false, true}) {
    for (const Precision precision : {Precision::fp32, Precision::fp16}) {
      const Program large = described(resnet50(kBatch), precision, fuse);
      expect_sound_plan(large);
      const Program small = described(resnet50(kBatch / 32), precision, fuse);
      const auto activations = [](const Program& program) {
        return static_cast<double>(memory_bytes(program, plan_memory(program)).activations);
      };
      EXPECT_NEAR(activations(large) / activations(small), 32, 0.5);
      EXPECT_GT(activations(large), 1e11);
    }
  }
}

TEST(CudaLargeSizes, AHeadOf100MillionClassesIsPlannedWithoutOverflow) {
  for (const Head head : {Head::replicated, Head::sampled})
    expect_sound_plan(
        described(make_arcface({.batch = kBatch, .classes = kClasses, .head = head}), Precision::fp16, true));
}

TEST(CudaLargeSizes, EveryNormOfBatch4096FitsAGridAndIsCovered) {
  const Graph graph = resnet50(kBatch);
  for (const Op& op : graph.ops) {
    const BatchNorm* norm = std::get_if<BatchNorm>(&op);
    if (!norm) continue;
    const Shape& in = graph.values[norm->in].shape;
    const std::int64_t pixels = in.n * in.h * in.w;
    const cuda::NormPartition partition = cuda::partition_norm(pixels, in.c);
    EXPECT_LE(partition.step_blocks, cuda::kNormBlocks) << norm->name;
    EXPECT_LE(partition.step_blocks, cuda::kMostBlocksBeside) << norm->name;
    EXPECT_GE(partition.step_blocks * partition.steps_per_block, pixels) << norm->name;
    EXPECT_LT((partition.step_blocks - 1) * partition.steps_per_block, pixels) << norm->name;
    EXPECT_GE(std::int64_t{partition.tiles} * partition.lanes * cuda::kNormGroup, in.c) << norm->name;
  }
}

TEST(CudaLargeSizes, DepthwisePartitionsOfBatch4096FitAGridAndAreCovered) {
  const Graph graph = make_arcface({.backbone = kMobileFaceNet, .batch = kBatch, .embedding = 128});
  int checked = 0;
  for (const Op& op : graph.ops) {
    const Conv* conv = std::get_if<Conv>(&op);
    if (!conv || !cuda::is_depthwise(graph, *conv)) continue;
    const cuda::WindowShape shape = cuda::window_shape(graph, *conv);
    const cuda::DepthwisePartition partition = cuda::partition_depthwise(shape, DType::f16);
    EXPECT_LE(partition.blocks, cuda::kMostBlocksBeside) << conv->name;
    EXPECT_GE(partition.blocks * partition.items_per_block, partition.items) << conv->name;
    EXPECT_EQ(
        cuda::depthwise_workspace_bytes(shape, DType::f16),
        4 * static_cast<std::size_t>(partition.blocks) * static_cast<std::size_t>(shape.taps() * shape.c));
    ++checked;
  }
  EXPECT_GT(checked, 10);
}

TEST(CudaLargeSizes, MarginPartitionsOfManyClassesFitAGridAndAreCovered) {
  for (const std::int64_t images : {kBatch, std::int64_t{2048} * 128}) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const cuda::MarginPartition partition = cuda::partition_margin(images, kClasses, dtype);
      EXPECT_LE(partition.blocks(), cuda::kMostBlocks);
      EXPECT_GE(partition.shares * partition.columns, kClasses);
      EXPECT_GE(partition.groups * cuda::kMarginRows, images);
      EXPECT_EQ(cuda::product_bytes(images, kClasses, dtype),
                static_cast<std::size_t>(images) * kClasses * bytes_of(dtype));
    }
  }
}

TEST(CudaLargeSizes, BlocksThatNoGpuTakesAreRefused) {
  EXPECT_EQ(cuda::blocks_for(kBatch * 112 * 112 * 64, 2048), 1'605'632U);
  EXPECT_EQ(cuda::blocks_for(cuda::kMostBlocks, 1), 2'147'483'647U);
  EXPECT_THROW(cuda::blocks_for(cuda::kMostBlocks + 1, 1), std::logic_error);
  EXPECT_THROW(cuda::blocks_for((std::int64_t{1} << 32) + 1, 1),
               std::logic_error);  // one block, truncated to 32 bits
  EXPECT_THROW(cuda::blocks_for(0, 1), std::logic_error);
}

}  // namespace
}  // namespace plumb
