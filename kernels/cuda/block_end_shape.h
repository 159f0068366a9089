// How our own kernel for the gradient of a block's end (block_end.h) shares out the work. Plain C++.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/blocks.h"

namespace plumb::cuda {

struct BlockEndShape {
  std::int64_t pixels = 0;
  int channels = 0;  // of the convolution's input
  int outputs = 0;   // its output channels
};

// A block computes a tile of 128 pixels x 128 channels by 4 x 2 warps; a warp has 32 pixels x 64 channels.
// Products are summed in steps of 64 output channels, whose factors lie in two stages in shared memory.
inline constexpr int kBlockEndThreads = 256;
inline constexpr int kBlockEndRows = 128;      // pixels of a tile
inline constexpr int kBlockEndChannels = 128;  // d_in's are a multiple of it; cuBLASLt wants the same
inline constexpr int kBlockEndOutputs = 64;    // d_out's are a multiple of it

// Shared memory holds the other gradient's tile and its mask, and the stages, in elements of 2 bytes. With
// sums the norm's input takes a stage in the last step.
constexpr int block_end_shared_bytes(int outputs, int norms) {
  const int stages = norms > 0 || outputs > kBlockEndOutputs ? 2 : 1;
  return kBlockEndRows * (2 * kBlockEndChannels + kBlockEndChannels / 8) +
         stages * 2 * kBlockEndOutputs * (kBlockEndRows + kBlockEndChannels);
}

// The norms' sums are left by rows of tiles, [rows, sums, channels] in f32, and finished by blocks that take
// 8 channels each.
inline constexpr int kFinishedChannels = 8, kFinishingRows = 128;
constexpr std::int64_t block_end_rows(const BlockEndShape& shape) {
  return divide_up(shape.pixels, kBlockEndRows);
}
// The gradient's sum, and that of its product with each norm's input.
constexpr int block_end_sums(int norms) {
  return norms == 0 ? 0 : norms + 1;
}
constexpr std::size_t block_end_workspace(const BlockEndShape& shape, int norms) {
  return sizeof(float) * static_cast<std::size_t>(block_end_sums(norms)) *
         static_cast<std::size_t>(block_end_rows(shape)) * static_cast<std::size_t>(shape.channels);
}

}  // namespace plumb::cuda
