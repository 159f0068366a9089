// Partition of a tensor among thread blocks for a norm's passes. It depends on the shape alone, so the order
// of summation is the same on every GPU. Plain C++.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "kernels/cuda/plan/blocks.h"
#include "models/graph.h"

namespace plumb::cuda {

inline constexpr int kNormGroup = 8;  // contiguous channels per thread
inline constexpr int kNormLanes =
    32;  // groups side by side in a block, at most: 256 channels, 512 bytes in half
inline constexpr int kNormThreads = 256;
// A thread's steps are a multiple of this, except at the end of the tensor: it loads several at once.
inline constexpr int kNormStepsAtOnce = 4;
// 8 for each of an H200's 132 multiprocessors, which run 3 or 4 at a time. Enough for the last ones to end
// together, few enough for partial sums to be 1 % of a large tensor's traffic.
inline constexpr std::int64_t kNormBlocks = 1024;
// How many blocks a pass has that stores a tensor and sums it: all run at once on a large GPU. A block
// waits for its stores before it hands on its sums, 2 to 3 us in which it asks for nothing.
inline constexpr std::int64_t kNormBlocksAtOnce = 256;

// A tensor [steps, channels], NHWC with pixels as steps. Block (tile, b) has the channels from tile * lanes *
// kNormGroup on and the steps from b * steps_per_block on; its thread (lane, row) takes 8 channels of every
// rows-th step.
struct NormPartition {
  std::int64_t steps = 0;
  std::int64_t steps_per_block = 0;
  std::int64_t elements_per_channel = 0;
  int channels = 0;
  int lanes = 0, rows = 0;
  int tiles = 0, step_blocks = 0;  // of the grid

  // The number of steps that the tile's blocks in front of `block` have.
  constexpr std::int64_t steps_before(int block) const {
    const std::int64_t walked = block * steps_per_block;
    return walked < steps ? walked : steps;
  }
};

// Throws std::logic_error if the channels are not a multiple of kNormGroup.
constexpr NormPartition partition_norm(std::int64_t steps, std::int64_t channels,
                                       std::int64_t blocks = kNormBlocks) {
  if (channels % kNormGroup != 0) throw std::logic_error("GPU kernels need a multiple of 8 channels");
  NormPartition part{.steps = steps, .elements_per_channel = steps, .channels = static_cast<int>(channels)};
  const std::int64_t groups = channels / kNormGroup;
  part.lanes = static_cast<int>(std::min<std::int64_t>(groups, kNormLanes));
  part.tiles = static_cast<int>(divide_up(groups, part.lanes));
  part.rows = kNormThreads / part.lanes;
  const std::int64_t at_least = std::int64_t{part.rows} * kNormStepsAtOnce;
  const std::int64_t wanted_blocks = std::max<std::int64_t>(1, blocks / part.tiles);
  part.steps_per_block = at_least * divide_up(divide_up(steps, at_least), wanted_blocks);
  part.step_blocks = static_cast<int>(divide_up(steps, part.steps_per_block));
  return part;
}

// The partition of a norm's input.
constexpr NormPartition partition_norm(const Shape& in, std::int64_t blocks = kNormBlocks) {
  return partition_norm(in.n * in.h * in.w, in.c, blocks);
}

// The windows of a max pool that a norm goes back through, and its partition of the pool's output.
inline constexpr int kPooledWindow = 3, kPooledStride = 2, kPooledPadding = 1;
constexpr bool goes_back_through(const Pool& pool) {
  return pool.kind == Pool::Kind::max && pool.kernel == kPooledWindow && pool.stride == kPooledStride &&
         pool.padding == kPooledPadding;
}
constexpr NormPartition partition_pooled(const Shape& in) {
  NormPartition part =
      partition_norm(in.n * divide_up(in.h, kPooledStride) * divide_up(in.w, kPooledStride), in.c);
  part.elements_per_channel = in.n * in.h * in.w;  // the sums are means over all of them
  return part;
}

// Blocks whose sums one block combines: at most 64 KiB of them (256 channels, two sums; 96 KiB with three),
// half a microsecond of one multiprocessor's bandwidth to the L2 cache. Two levels do for kNormBlocks.
inline constexpr int kNormFanIn = 32;
// Counters of blocks that have ended: per tile and group of kNormFanIn blocks, then of kNormFanIn groups; one
// more for the tiles.
constexpr int norm_counters_per_tile(const NormPartition& partition) {
  int counters = 0;
  for (std::int64_t left = partition.step_blocks; left > 1; left = divide_up(left, kNormFanIn))
    counters += static_cast<int>(divide_up(left, kNormFanIn));
  return counters;
}
constexpr std::int64_t norm_counters(const NormPartition& partition) {
  return std::int64_t{partition.tiles} * norm_counters_per_tile(partition) + 1;
}

// Partial sums per channel and block, [step_blocks, sums, channels] in f32: two, and a third for the
// gradient of a PReLU's slope, or for the norm of a shortcut.
inline constexpr int kNormSums = 2;
inline constexpr int kMostNormSums = 3;
constexpr std::size_t norm_partials_bytes(const NormPartition& partition, int sums = kNormSums) {
  return static_cast<std::size_t>(sums) * sizeof(float) * static_cast<std::size_t>(partition.step_blocks) *
         static_cast<std::size_t>(partition.channels);
}
// Workspace of norm_statistics (partial sums), norm_backward (rows of f32 [channels], then partial sums) and
// norm_pair_backward (likewise).
struct NormWorkspace {
  int rows = 3;  // the coefficients
  int sums = kNormSums;
  constexpr std::size_t bytes(const NormPartition& partition) const {
    return norm_partials_bytes(partition, sums) +
           static_cast<std::size_t>(rows) * sizeof(float) * static_cast<std::size_t>(partition.channels);
  }
};
inline constexpr NormWorkspace kPreluWorkspace{.rows = 4, .sums = kMostNormSums};  // and gradients of slopes
inline constexpr NormWorkspace kPairWorkspace{.rows = 6, .sums = kMostNormSums};   // coefficients of both

}  // namespace plumb::cuda
