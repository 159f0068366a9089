// How tensors are shared out among thread blocks, and the clock of the device's waits: what tests/conformance
// can't see.
#include <gtest/gtest.h>

#include <tuple>

#include "kernels/cuda/own/conv.h"
#include "kernels/cuda/own/optimizer.h"
#include "kernels/cuda/plan/norm_partition.h"

namespace plumb::cuda {
namespace {

struct NormSize {
  std::int64_t pixels, channels;
};

TEST(NormPartition, FillsALargeGpu) {
  for (const NormSize& size : {NormSize{256 * 112 * 112, 64}, {256 * 56 * 56, 256}, {256 * 7 * 7, 2048}}) {
    const NormPartition partition = partition_norm(size.pixels, size.channels);
    const int blocks = partition.tiles * partition.step_blocks;
    EXPECT_GT(blocks, 3 * 132) << size.channels;
    EXPECT_LE(blocks, kNormBlocks) << size.channels;
  }
}

TEST(NormPartition, OfAPassWithSumsRunsAtOnceOnAnA100) {
  for (const NormSize& size :
       {NormSize{256 * 56 * 56, 64}, {256 * 28 * 28, 128}, {256 * 14 * 14, 256}, {256 * 7 * 7, 512}}) {
    const NormPartition partition = partition_norm(size.pixels, size.channels, kNormBlocksAtOnce);
    EXPECT_LE(partition.tiles * partition.step_blocks, 3 * 108) << size.channels;
    EXPECT_GT(partition.tiles * partition.step_blocks, 132) << size.channels;
  }
}

// MobileFaceNet's convolutions at batch 128.
TEST(DepthwisePartition, FillsAGpuAndKeepsPartialSumsSmall) {
  struct Case {
    std::int64_t side, channels;
    int kernel, stride, padding;
  };
  for (const Case& c : {Case{56, 64, 3, 1, 1},
                        {56, 128, 3, 2, 1},
                        {28, 256, 3, 2, 1},
                        {14, 256, 3, 1, 1},
                        {14, 512, 3, 2, 1},
                        {7, 256, 3, 1, 1},
                        {7, 512, 7, 1, 0}}) {
    SCOPED_TRACE(testing::Message() << c.side << " pixels a side, " << c.channels << " channels");
    const std::int64_t out = (c.side + 2 * c.padding - c.kernel) / c.stride + 1;
    const WindowShape shape{.n = 128,
                            .h = c.side,
                            .w = c.side,
                            .c = c.channels,
                            .out_h = out,
                            .out_w = out,
                            .kernel = c.kernel,
                            .stride = c.stride,
                            .padding = c.padding};
    for (const DType dtype : {DType::f16, DType::f32}) {
      const DepthwisePartition partition = partition_depthwise(shape, dtype);
      EXPECT_GT(partition.tiles * partition.blocks, 30);
      EXPECT_LE(partition.tiles * partition.blocks, 2 * 512);
      EXPECT_LE(depthwise_workspace_bytes(shape, dtype),
                static_cast<std::size_t>(shape.n * shape.h * shape.w * shape.c) * bytes_of(dtype) / 6);
    }
  }
}

TEST(StampWait, AddsUpTheWaitsOfAnIteration) {
  for (const auto& [what, waited, other] :
       {std::tuple{Wait::collectives, &State::exposed_ns, &State::data_wait_ns},
        std::tuple{Wait::data, &State::data_wait_ns, &State::exposed_ns}}) {
    State state;
    std::uint64_t before = 0;
    for (int i = 0; i < 3; ++i) {
      launch_stamp_wait(&state, what, false, nullptr);
      EXPECT_EQ(state.*waited, before) << "the wait isn't over";
      state.wait_began_ns -= 1000;  // pretend it began earlier
      launch_stamp_wait(&state, what, true, nullptr);
      EXPECT_GE(state.*waited, before + 1000);
      before = state.*waited;
    }
    EXPECT_EQ(state.*other, 0U);
  }
}

}  // namespace
}  // namespace plumb::cuda
