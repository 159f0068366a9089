// How a norm's tensor is shared out among thread blocks.
#include "kernels/cuda/plan/norm_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/cuda/own/norm.h"
#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {
namespace {

// Extent of a norm's tensor. plane 1: NHWC; else NCHW with so many pixels per image, which divide `pixels`.
struct NormSize {
  std::int64_t pixels, channels, plane = 1;
  NormPartition partition() const { return partition_norm(pixels / plane, channels, plane); }
};

TEST(NormPartition, GivesEveryElementToOneThreadAndFillsALargeGpu) {
  for (const NormSize& size : {NormSize{1, 8}, {7, 2048}, {1569, 72}, {130, 264}, {98, 2048}}) {
    const NormPartition partition = size.partition();
    EXPECT_GE(partition.tiles * partition.lanes * kNormGroup, partition.channels);
    EXPECT_GE(partition.step_blocks * partition.steps_per_block, partition.steps);
    EXPECT_LT((partition.step_blocks - 1) * partition.steps_per_block, partition.steps);
    EXPECT_LE(partition.lanes * partition.rows, kNormThreads);
  }
  for (const NormSize& size : {NormSize{256 * 112 * 112, 64},
                               {256 * 56 * 56, 256},
                               {256 * 7 * 7, 2048},
                               {128 * 112 * 112, 64, 112 * 112},
                               {128 * 56 * 56, 256, 56 * 56}}) {
    const NormPartition partition = size.partition();
    const int blocks = partition.tiles * partition.partial_blocks();
    EXPECT_GT(blocks, 3 * 132) << size.channels;
    EXPECT_LE(blocks, kNormBlocks) << size.channels;
  }
}

TEST(NormPartition, OfAPassWithSumsRunsAtOnceOnAnA100) {
  for (const NormSize& size :
       {NormSize{256 * 56 * 56, 64}, {256 * 28 * 28, 128}, {256 * 14 * 14, 256}, {256 * 7 * 7, 512}}) {
    const NormPartition partition = partition_norm(size.pixels, size.channels, 1, kNormBlocksAtOnce);
    EXPECT_GE(partition.step_blocks * partition.steps_per_block, partition.steps);
    EXPECT_LE(partition.tiles * partition.step_blocks, 3 * 108) << size.channels;
    EXPECT_GT(partition.tiles * partition.step_blocks, 132) << size.channels;
  }
}

TEST(NormPartition, CountsEveryPixelOfAPlaneOnce) {
  for (const NormSize& size : {NormSize{4, 8, 4},
                               {50 * 49, 3, 49},
                               {2200 * 4, 1, 4},
                               {2 * 1052, 3, 1052},
                               {3 * 601, 2, 601},
                               {2 * 3136, 8, 3136}}) {
    SCOPED_TRACE(size.pixels);
    const NormPartition partition = size.partition();
    EXPECT_EQ(partition.tiles, partition.channels);
    EXPECT_LE(partition.lanes * partition.rows, kNormThreads);
    std::int64_t elements = 0;
    for (int chunk = 0, block = 0; chunk < partition.chunks; ++chunk) {
      const std::int64_t width = std::int64_t{partition.lanes} * partition.group;
      const std::int64_t in_chunk = std::min(width, partition.plane - chunk * width);
      for (int b = 0; b < partition.step_blocks; ++b, ++block) {
        EXPECT_EQ(partition.elements_before(block), elements);
        elements +=
            in_chunk * std::min(partition.steps_per_block, partition.steps - b * partition.steps_per_block);
        EXPECT_LT(partition.elements_before(block), elements);
      }
    }
    EXPECT_EQ(partition.elements_before(partition.partial_blocks()), size.pixels);
  }
}

TEST(NormPartition, CountsAllPixelsInFrontOfAPool) {
  const NormPartition partition = partition_pooled({2, 7, 9, 8});
  EXPECT_EQ(partition.steps, 2 * 4 * 5);
  EXPECT_EQ(partition.elements_per_channel, 2 * 7 * 9);
}

TEST(NormPlanes, AreF32AndWithoutBits) {
  GuardedTensor any(DType::f32, std::vector<double>(64, 1.0));
  const NormPartition partition = partition_norm(1, 4, 16);
  NormApply apply{.in = any.data(), .scale_shift = any.as<float>(), .out = any.data()};
  EXPECT_THROW(launch_norm_apply(partition, DType::f16, apply, nullptr), std::logic_error);
  apply.mask = any.as<std::uint8_t>();
  EXPECT_THROW(launch_norm_apply(partition, DType::f32, apply, nullptr), std::logic_error);
  const NormGradient gradient{.in = any.data(), .d_out = any.data(), .mask = any.as<std::uint8_t>()};
  EXPECT_THROW(launch_norm_backward_apply(partition, DType::f32, gradient, any.as<float>(),
                                          {.data = any.data()}, nullptr),
               std::logic_error);
}

}  // namespace
}  // namespace plumb::cuda
