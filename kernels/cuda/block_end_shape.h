// How our own kernels for block ends (block_end.h) share out the work. Plain C++.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/blocks.h"

namespace plumb::cuda {

struct BlockEndShape {
  std::int64_t pixels = 0;
  int channels = 0;  // of what is computed
  int outputs = 0;   // of the factors: a gradient's convolution's output channels
};

// A block computes a tile of 128 pixels x 128 channels by 4 x 2 warps; a warp has 32 pixels x 64 channels.
// Products are summed in steps of 64 factors, which lie in two stages in shared memory. For the gradient of a
// block end's input, which has more steps, tiles have 64 channels and three stages, so that more bytes are in
// flight.
inline constexpr int kBlockEndThreads = 256;
inline constexpr int kBlockEndRows = 128;      // pixels of a tile
inline constexpr int kBlockEndChannels = 128;  // channels are a multiple of it; cuBLASLt wants the same
inline constexpr int kThroughChannels = 64;
inline constexpr int kBlockEndStep = 64;  // outputs are a multiple of it

constexpr int block_end_stages(int tile_channels) {
  return tile_channels == kThroughChannels ? 3 : 2;
}
// Shared memory holds the tile (before: what is added) and its mask or line, and the stages, in elements of 2
// bytes. With sums for a norm, its input takes a stage in the last step. depth: factors of a sum.
constexpr int block_end_shared_bytes(int tile_channels, int depth, int sums) {
  const int stages = sums > 1 || depth > kBlockEndStep ? block_end_stages(tile_channels) : 1;
  return kBlockEndRows * (2 * tile_channels + kBlockEndChannels / 8) +
         stages * 2 * kBlockEndStep * (kBlockEndRows + tile_channels);
}

// Sums are left by rows of tiles, [rows, sums, channels] in f32, and finished by blocks that take 8 channels
// each.
inline constexpr int kFinishedChannels = 8, kFinishingRows = 128;
constexpr std::int64_t block_end_rows(const BlockEndShape& shape) {
  return divide_up(shape.pixels, kBlockEndRows);
}
// sums: the gradient's, and those of its product with each norm's input.
constexpr std::size_t block_end_workspace(const BlockEndShape& shape, int sums) {
  return sizeof(float) * static_cast<std::size_t>(sums) * static_cast<std::size_t>(block_end_rows(shape)) *
         static_cast<std::size_t>(shape.channels);
}

}  // namespace plumb::cuda
