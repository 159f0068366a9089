// How a norm's passes share a tensor [pixels, channels] among thread blocks: by the shape alone, so that sums
// are made in the same order on every GPU. Plain C++.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/blocks.h"

namespace plumb::cuda {

inline constexpr int kNormGroup = 8;  // neighbouring channels of a thread
inline constexpr int kNormLanes =
    32;  // groups side by side in a block, at most: 256 channels, 512 bytes in half
inline constexpr int kNormThreads = 256;
// A thread has a multiple of so many pixels, except at the end of the tensor: it asks for several at once.
inline constexpr int kNormPixelsAtOnce = 4;
// 8 for each of an H200's 132 multiprocessors, of which 3 or 4 run at a time: enough for the last ones to end
// together, few enough for partial sums to be 1 % of what a large tensor takes.
inline constexpr std::int64_t kNormBlocks = 1024;

// Block (tile, b) has the channels from tile * lanes * kNormGroup on, and the pixels from
// b * pixels_per_block on; its thread (lane, row) every rows-th of these.
struct NormPartition {
  std::int64_t pixels = 0;
  std::int64_t pixels_per_block = 0;
  int channels = 0;
  int lanes = 0, rows = 0;
  int tiles = 0, pixel_blocks = 0;
};

constexpr NormPartition partition_norm(std::int64_t pixels, std::int64_t channels) {
  const std::int64_t groups = divide_up(channels, kNormGroup);
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

// Partial sums of a channel and block of pixels, [pixel_blocks, sums, channels] in f32: two, and a third
// where a PReLU's slope gets a gradient.
inline constexpr int kNormSums = 2;
inline constexpr int kPreluSums = 3;
constexpr std::size_t norm_partials_bytes(const NormPartition& partition, int sums = kNormSums) {
  return static_cast<std::size_t>(sums) * sizeof(float) * static_cast<std::size_t>(partition.pixel_blocks) *
         static_cast<std::size_t>(partition.channels);
}
// What norm_statistics (partial sums) and norm_backward (in front of them three coefficients per channel, and
// with a PReLU the gradient of its slope) take as workspace.
constexpr std::size_t norm_workspace_bytes(std::int64_t pixels, std::int64_t channels, int sums = kNormSums) {
  return norm_partials_bytes(partition_norm(pixels, channels), sums) +
         static_cast<std::size_t>(sums + 1) * sizeof(float) * static_cast<std::size_t>(channels);
}

}  // namespace plumb::cuda
