// The first convolution of a ResNet: 7x7, stride 2, padding 3, from images of 3 channels, held as 4, to 64.
// Which convolutions our own kernels for it take (own/conv.h), and how they share out the work. Plain C++.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plan/blocks.h"
#include "kernels/program/instructions/dtype.h"
#include "models/graph.h"

namespace plumb::cuda {

inline constexpr int kStemKernel = 7, kStemStride = 2, kStemPadding = 3;
inline constexpr int kStemChannels = 4;  // of a pixel, as held: 8 bytes
inline constexpr int kStemOutputs = 64;
inline constexpr int kStemWeights = kStemOutputs * kStemKernel * kStemKernel * kStemChannels;
// The first with products of 16x8x16 halves and asynchronous copies.
inline constexpr int kStemComputeCapability = 80;

struct StemShape {
  std::int64_t n = 0, h = 0, w = 0, out_h = 0, out_w = 0;
};

// Pixels are read in pairs: an even number to a row.
inline bool is_stem(const Graph& graph, const Conv& op) {
  return op.in == 0 && op.kernel == kStemKernel && op.stride == kStemStride && op.padding == kStemPadding &&
         op.groups == 1 && graph.values[op.in].shape.c <= kStemChannels &&
         graph.values[op.in].shape.w % 2 == 0 && graph.values[op.out].shape.c == kStemOutputs;
}

// A block computes tiles of 2 rows of up to 112 outputs, each of its 7 warps 16 columns or, of the weight
// gradient, a row of the kernel.
inline constexpr int kStemTileRows = 2, kStemTileColumns = 112;
inline constexpr int kStemWarps = kStemTileColumns / 16, kStemThreads = 32 * kStemWarps;

// Shared memory holds chunks of 16 bytes. As a product of matrices: for each row of the kernel, an output's
// window is 8 pixels, the one to the left of the kernel's included, whose weight is 0. So a window is 4
// chunks and begins one behind that of the output to its left: a tile's input lies as rows of pixels, and
// windows overlap there.
inline constexpr int kStemWindowChunks = 4;
inline constexpr int kStemRowChunks = kStemTileColumns + kStemWindowChunks - 1;
inline constexpr int kStemInputChunks =
    (kStemStride * kStemTileRows + kStemKernel - kStemStride) * kStemRowChunks;
inline constexpr int kStemWeightChunks = kStemKernel * kStemWindowChunks * kStemOutputs;
inline constexpr int kStemPixelChunks = kStemOutputs / 8;  // of an output's gradient
inline constexpr int kStemGradientChunks = kStemTileRows * kStemTileColumns * kStemPixelChunks;
// A tile is computed while the next one is copied.
inline constexpr int kStemForwardSharedBytes = 16 * (kStemWeightChunks + 2 * kStemInputChunks),
                     kStemWeightsSharedBytes = 16 * 2 * (kStemGradientChunks + kStemInputChunks);

inline std::int64_t stem_tiles(const StemShape& shape) {
  return shape.n * divide_up(shape.out_h, kStemTileRows) * divide_up(shape.out_w, kStemTileColumns);
}
// Two per multiprocessor, which share out the tiles.
inline int stem_blocks(const StemShape& shape, int multiprocessors) {
  return static_cast<int>(std::min(stem_tiles(shape), std::int64_t{2} * std::max(multiprocessors, 1)));
}

// Each block's part of the sums.
inline std::size_t stem_forward_workspace(const StemShape& shape, int multiprocessors) {
  return sizeof(float) * 2 * kStemOutputs * static_cast<std::size_t>(stem_blocks(shape, multiprocessors));
}
inline std::size_t stem_weights_workspace(const StemShape& shape, int multiprocessors) {
  return sizeof(float) * kStemWeights * static_cast<std::size_t>(stem_blocks(shape, multiprocessors));
}

}  // namespace plumb::cuda
