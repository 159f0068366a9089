// Partition of a tensor [pixels, channels] among thread blocks for a norm's passes. It depends on the shape
// alone, so the order of summation is the same on every GPU. Plain C++.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "kernels/cuda/blocks.h"

namespace plumb::cuda {

inline constexpr int kNormGroup = 8;  // contiguous channels per thread
inline constexpr int kNormLanes =
    32;  // groups side by side in a block, at most: 256 channels, 512 bytes in half
inline constexpr int kNormThreads = 256;
// A thread's pixels are a multiple of this, except at the end of the tensor: it loads several at once.
inline constexpr int kNormPixelsAtOnce = 4;
// 8 for each of an H200's 132 multiprocessors, which run 3 or 4 at a time. Enough for the last ones to end
// together, few enough for partial sums to be 1 % of a large tensor's traffic.
inline constexpr std::int64_t kNormBlocks = 1024;

// Block (tile, b) has the channels from tile * lanes * kNormGroup on and the pixels from b * pixels_per_block
// on; its thread (lane, row) takes every rows-th pixel.
struct NormPartition {
  std::int64_t pixels = 0;
  std::int64_t pixels_per_block = 0;
  int channels = 0;
  int lanes = 0, rows = 0;
  int tiles = 0, pixel_blocks = 0;
};

// Throws std::logic_error unless the channels are a multiple of kNormGroup.
constexpr NormPartition partition_norm(std::int64_t pixels, std::int64_t channels) {
  if (channels % kNormGroup != 0) throw std::logic_error("a GPU's kernels want channels in eights");
  const std::int64_t groups = channels / kNormGroup;
  const std::int64_t lanes = std::min<std::int64_t>(groups, kNormLanes);
  const std::int64_t rows = kNormThreads / lanes;
  const std::int64_t tiles = divide_up(groups, lanes);
  const std::int64_t chunk = rows * kNormPixelsAtOnce;
  const std::int64_t wanted_blocks = std::max<std::int64_t>(1, kNormBlocks / tiles);
  const std::int64_t pixels_per_block = chunk * divide_up(divide_up(pixels, chunk), wanted_blocks);
  return {.pixels = pixels,
          .pixels_per_block = pixels_per_block,
          .channels = static_cast<int>(channels),
          .lanes = static_cast<int>(lanes),
          .rows = static_cast<int>(rows),
          .tiles = static_cast<int>(tiles),
          .pixel_blocks = static_cast<int>(divide_up(pixels, pixels_per_block))};
}

// Blocks whose sums one block combines: at most 64 KiB of them (256 channels, two sums), half a microsecond
// of one multiprocessor's bandwidth to the L2 cache. Two levels do for kNormBlocks.
inline constexpr int kNormFanIn = 32;
// Counters of blocks that have ended: per tile and group of kNormFanIn blocks, then of kNormFanIn groups; one
// more for the tiles.
constexpr int norm_counters_per_tile(const NormPartition& partition) {
  int counters = 0;
  for (std::int64_t left = partition.pixel_blocks; left > 1; left = divide_up(left, kNormFanIn))
    counters += static_cast<int>(divide_up(left, kNormFanIn));
  return counters;
}
constexpr std::int64_t norm_counters(const NormPartition& partition) {
  return std::int64_t{partition.tiles} * norm_counters_per_tile(partition) + 1;
}

// Partial sums per channel and block of pixels, [pixel_blocks, sums, channels] in f32: two, and a third for
// the gradient of a PReLU's slope.
inline constexpr int kNormSums = 2;
inline constexpr int kPreluSums = 3;
constexpr std::size_t norm_partials_bytes(const NormPartition& partition, int sums = kNormSums) {
  return static_cast<std::size_t>(sums) * sizeof(float) * static_cast<std::size_t>(partition.pixel_blocks) *
         static_cast<std::size_t>(partition.channels);
}
// Workspace of norm_statistics (partial sums) and norm_backward (three coefficients per channel, with a PReLU
// the gradient of its slope, then partial sums).
constexpr std::size_t norm_workspace_bytes(std::int64_t pixels, std::int64_t channels, int sums = kNormSums) {
  return norm_partials_bytes(partition_norm(pixels, channels), sums) +
         static_cast<std::size_t>(sums + 1) * sizeof(float) * static_cast<std::size_t>(channels);
}

}  // namespace plumb::cuda
