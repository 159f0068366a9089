// Convolutions of 64 channels to 64 with 3x3 windows, stride 1 and padding 1: how our own kernel for Hopper
// (window.h) shares out the work. Plain C++.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plan/blocks.h"

namespace plumb::cuda {

struct WindowShape {
  std::int64_t n = 0, h = 0, w = 0;  // of input and output
};

inline constexpr int kWindow = 3, kWindowTaps = kWindow * kWindow, kWindowChannels = 64;
// The GPUs with products of warpgroups, and the largest image: elements within it are counted in 32 bits.
inline constexpr int kWindowComputeCapability = 90;
inline constexpr std::int64_t kMostWindowPixels = std::int64_t{1} << 24;

// A block has two warpgroups, which take its tiles in turn.
inline constexpr int kWindowGroups = 2, kWindowGroupThreads = 128;
inline constexpr int kWindowThreads = kWindowGroups * kWindowGroupThreads;

// A tile is 4 rows of up to 56 outputs. As a product of matrices: 64 channels times the tile's pixels, summed
// over taps and input channels. Shared memory has the tile's input with a border of one pixel, row after row.
// So output (row, column) is at position row * pitch + column, and a tap's input a fixed distance behind it:
// a product's columns are adjacent positions, of which the last two of each row are of no pixel.
inline constexpr int kWindowTileRows = 4, kWindowTileColumns = 56;
inline constexpr int kWindowPitch = kWindowTileColumns + kWindow - 1;
inline constexpr int kWindowColumns = kWindowTileRows * kWindowPitch;  // of a product
inline constexpr int kWindowPositions = (kWindowTileRows + kWindow - 1) * kWindowPitch;

// Shared memory in chunks of 16 bytes, 8 channels. A plane has a chunk of every position, and two more, which
// products for the last two columns read; an odd number of chunks beyond 128 bytes spreads a pixel's over all
// banks. Three tiles' input: two are multiplied while the third is copied. Then a warp's outputs, twice.
inline constexpr int kWindowChunks = kWindowChannels / 8;
inline constexpr int kWindowPlaneChunks = kWindowPositions + 5;
static_assert(kWindowPlaneChunks % 8 == 1);
inline constexpr int kWindowStages = 3, kWindowStageChunks = kWindowChunks * kWindowPlaneChunks;
inline constexpr int kWindowTapChunks = kWindowChannels * kWindowChunks;
inline constexpr int kWindowWeightChunks = kWindowTaps * kWindowTapChunks;
inline constexpr int kWindowOutputPixels = 16, kWindowHalfChunks = kWindowOutputPixels + 4;
inline constexpr int kWindowOutputChunks = 2 * kWindowHalfChunks;
inline constexpr int kWindowSharedBytes = 16 * (kWindowWeightChunks + kWindowStages * kWindowStageChunks +
                                                kWindowThreads / 32 * 2 * kWindowOutputChunks);

// The weights' gradient: a block has a warpgroup for each row of the windows. A tile's gradient lies beside
// its input, without a border.
inline constexpr int kWindowWeightsThreads = kWindow * kWindowGroupThreads;
inline constexpr int kWindowWeights = kWindowTaps * kWindowChannels * kWindowChannels;
inline constexpr int kWindowGradientPlaneChunks = kWindowTileRows * kWindowTileColumns + 1;
static_assert(kWindowGradientPlaneChunks % 8 == 1);
inline constexpr int kWindowWeightsStageChunks =
    kWindowStageChunks + kWindowChunks * kWindowGradientPlaneChunks;
inline constexpr int kWindowWeightsSharedBytes = 16 * kWindowStages * kWindowWeightsStageChunks;

inline std::int64_t window_tiles(const WindowShape& shape) {
  return shape.n * divide_up(shape.h, kWindowTileRows) * divide_up(shape.w, kWindowTileColumns);
}
// One per multiprocessor: they share out the tiles.
inline int window_blocks(const WindowShape& shape, int multiprocessors) {
  return static_cast<int>(std::min(window_tiles(shape), std::int64_t{std::max(multiprocessors, 1)}));
}
// What a warpgroup leaves of two sums for each channel.
inline std::size_t window_workspace(const WindowShape& shape, int multiprocessors) {
  return sizeof(float) * 2 * kWindowChannels * kWindowGroups *
         static_cast<std::size_t>(window_blocks(shape, multiprocessors));
}
// What a block leaves of the weights' gradient.
inline std::size_t window_weights_workspace(const WindowShape& shape, int multiprocessors) {
  return sizeof(float) * kWindowWeights * static_cast<std::size_t>(window_blocks(shape, multiprocessors));
}

}  // namespace plumb::cuda
