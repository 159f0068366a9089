// How our own kernels for block ends (block_end.h) share out the work. Plain C++.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plan/blocks.h"

namespace plumb::cuda {

struct BlockEndShape {
  std::int64_t pixels = 0;
  int channels = 0;        // of what is computed
  int outputs = 0;         // of the factors: a gradient's convolution's output channels
  int second_outputs = 0;  // of the second factors, if there are any
  PixelGrid added_grid;    // of a gradient that is added
};

// A block computes a tile of 128 pixels x 128 channels by 4 x 2 warps; a warp has 32 pixels x 64 channels.
// Products are summed in steps of 64 factors. The gradient of a block end's input may have 64 channels, and
// then tiles of 64. With 128 channels and more those are slower: 0.165 ms instead of 0.141 for 128 channels
// at 28x28 pixels and batch 256 on an H200 (two GPUs, 2 % apart; output not kept).
inline constexpr int kBlockEndThreads = 256;
inline constexpr int kBlockEndRows = 128;      // pixels of a tile
inline constexpr int kBlockEndChannels = 128;  // channels are a multiple of it
inline constexpr int kBlockEndStep = 64;       // outputs are a multiple of it

// The largest convolution whose norm's coefficients our kernels make from products (block_end.h).
inline constexpr int kMostProductInputs = 1024, kMostProductOutputs = 4096;

// Shared memory holds a mask of the tile or what goes with its channels, and so many stages in elements of 2
// bytes: as many as two blocks of a multiprocessor have room for. A step's factors take one, then what is
// added to the tile, which the tile replaces, and a norm's input.
constexpr int block_end_stages(int tile_channels) {
  return tile_channels < kBlockEndChannels ? 4 : 3;
}
constexpr int block_end_stage_bytes(int tile_channels) {
  return 2 * kBlockEndStep * (kBlockEndRows + tile_channels);
}
constexpr int block_end_shared_bytes(int tile_channels) {
  return kBlockEndRows * 16 + block_end_stages(tile_channels) * block_end_stage_bytes(tile_channels);
}

// Sums are left by rows of tiles, [rows, sums, channels] in f32.
constexpr std::int64_t block_end_rows(const BlockEndShape& shape) {
  return divide_up(shape.pixels, kBlockEndRows);
}
// sums: the gradient's, and those of its product with each norm's input.
constexpr std::size_t block_end_workspace(const BlockEndShape& shape, int sums) {
  return sizeof(float) * static_cast<std::size_t>(sums) * static_cast<std::size_t>(block_end_rows(shape)) *
         static_cast<std::size_t>(shape.channels);
}

}  // namespace plumb::cuda
