// The parts of a block end's kernel (block_end.cu): copies of a tile's factors to shared memory, products on
// tensor cores, and what follows them. For .cu files only.
#pragma once

#include <gpu_runtime.h>

#include <cstdint>

#include "kernels/cuda/own/block_end.h"
#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/plan/block_end_shape.h"

namespace plumb::cuda {

// In shared memory lie chunks of 16 bytes, 8 elements.
inline constexpr int kFactorChunks = kBlockEndStep / 8;  // of a pixel's factors in a step

__device__ inline int own_lane() {
  return static_cast<int>(threadIdx.x % 32);
}
__device__ inline int own_warp() {
  return static_cast<int>(threadIdx.x / 32);
}

// A tile, and how its 4 x 2 warps share it out.
template <int kTileChannels>
struct EndTile {
  static constexpr int kChannels = kTileChannels;
  static constexpr int kRowChunks = kChannels / 8;       // of a pixel's or a weight's channels
  static constexpr int kWarpTiles = kBlockEndRows / 64;  // of 16 pixels
  static constexpr int kWarpRows = 16 * kWarpTiles, kWarpChunks = kRowChunks / 2;
  static constexpr int kStoredRows = 32 / kWarpChunks;                   // of a warp, at once
  static constexpr int kSummingThreads = kBlockEndThreads / kRowChunks;  // that sum the same channels
  static constexpr int kOwnPixels = kWarpRows / kStoredRows;             // that a thread stores

  // Where the warp's part begins.
  __device__ static int first_row() { return own_warp() / 2 * kWarpRows; }
  __device__ static int first_chunk() { return own_warp() % 2 * kWarpChunks; }
};

// What follows the product.
enum class End {
  gradient,  // + the other gradient, masked by bits
  forward,   // + shift + shortcut, ReLU, which leaves the bits
  through,   // + the second product + shift, back through the ReLU of the norm in front, whose sums follow;
             // without sums not through a norm
  joined     // as forward, but the shortcut is the second product
};
constexpr bool has_second_product(End end) {
  return end == End::joined || end == End::through;
}
constexpr bool leaves_mask(End end) {
  return end == End::forward || end == End::joined;
}

// Where a row's chunk lies, so that a column of 8 rows spreads over all banks; alike in the next 8 rows.
template <int kRowChunks>
__device__ constexpr int chunk_at(int row, int chunk) {
  return row * kRowChunks + (chunk ^ (row & 7));
}

// Starts copying kRows rows of kRowChunks chunks. Rows past `rows` repeat the last one.
template <int kRowChunks, int kRows, typename T>
__device__ void hold_rows(const T* from, int stride, int rows, uint4* held) {
  constexpr int kRowsAtOnce = kBlockEndThreads / kRowChunks;
  const int row = static_cast<int>(threadIdx.x / kRowChunks),
            chunk = static_cast<int>(threadIdx.x % kRowChunks);
  held += chunk_at<kRowChunks>(row, chunk);
  from += chunk * 8;
#pragma unroll
  for (int down = 0; down < kRows; down += kRowsAtOnce)
    gpu::copy_to_shared(held + down * kRowChunks, from + min(row + down, rows - 1) * stride, true);
}

// As hold_rows() for a grid of pixels, from the image's pixel `first` on; zeros for all others.
template <int kRowChunks, int kRows, typename T>
__device__ void hold_grid(const T* from, const PixelGrid& grid, std::int64_t first, int stride, int rows,
                          uint4* held) {
  constexpr int kRowsAtOnce = kBlockEndThreads / kRowChunks;
  const int row = static_cast<int>(threadIdx.x / kRowChunks),
            chunk = static_cast<int>(threadIdx.x % kRowChunks);
  const auto pixel = static_cast<unsigned>(first) + static_cast<unsigned>(row);
  const unsigned line = pixel / static_cast<unsigned>(grid.width);
  int x = static_cast<int>(pixel % static_cast<unsigned>(grid.width)),
      y = static_cast<int>(line % static_cast<unsigned>(grid.height)),
      image = static_cast<int>(line / static_cast<unsigned>(grid.height));
  held += chunk_at<kRowChunks>(row, chunk);
  from += chunk * 8;
#pragma unroll
  for (int down = 0; down < kRows; down += kRowsAtOnce) {
    const bool is_there = row + down < rows && ((x | y) & grid.skipped()) == 0;
    const std::int64_t at =
        std::int64_t{image * grid.grid_height() + (y >> grid.shift)} * grid.grid_width() + (x >> grid.shift);
    gpu::copy_to_shared(held + down * kRowChunks, is_there ? from + at * stride : from, is_there);
    for (x += kRowsAtOnce; x >= grid.width; x -= grid.width)
      if (++y == grid.height) y = 0, ++image;
  }
}

// The mask of two adjacent elements, 16 bits each, from their bits.
__device__ constexpr unsigned mask_of_pair(unsigned bits) {
  return (bits & 1) * 0xffffU | (bits >> 1 & 1) * 0xffff0000U;
}

// A warp's sums: 16-pixel tiles x tiles of 8 channels, as multiply_add() shares them out among lanes.
template <typename Tile>
using WarpSums = float[Tile::kWarpTiles][Tile::kWarpChunks][4];

// += left weight of one step.
template <typename T, typename Tile>
__device__ void multiply_step(const uint4* left, const uint4* weights, WarpSums<Tile>& sums) {
  constexpr int kRowChunks = Tile::kRowChunks, kWarpTiles = Tile::kWarpTiles;
  const int lane = own_lane(), first = Tile::first_chunk() + lane / 16;
  left += Tile::first_row() * kFactorChunks;
#pragma unroll
  for (int part = 0; part < kBlockEndStep / 16; ++part) {
    unsigned pixels[kWarpTiles][4];
#pragma unroll
    for (int tile = 0; tile < kWarpTiles; ++tile)
      gpu::load_matrices(pixels[tile], left + tile * 16 * kFactorChunks +
                                           chunk_at<kFactorChunks>(lane % 16, part * 2 + lane / 16));
#pragma unroll
    for (int pair = 0; pair < Tile::kWarpChunks / 2; ++pair) {
      unsigned factors[4];
      gpu::load_transposed_matrices(
          factors, weights + part * 16 * kRowChunks + chunk_at<kRowChunks>(lane % 16, first + pair * 2));
#pragma unroll
      for (int tile = 0; tile < kWarpTiles; ++tile) {
        gpu::multiply_add<T>(sums[tile][2 * pair], pixels[tile], factors[0], factors[1]);
        gpu::multiply_add<T>(sums[tile][2 * pair + 1], pixels[tile], factors[2], factors[3]);
      }
    }
  }
}

// The channels of the tile that a lane has in a warp's chunk of sums: this one and the next.
template <typename Tile>
__device__ int channel_in_tile(int chunk) {
  return (Tile::first_chunk() + chunk) * 8 + own_lane() % 4 * 2;
}

// What goes with a channel's sums, in shared memory where the gradient's mask would lie: [2, kChannels] the
// shift and the factor of what is held, then what the second product is multiplied by.
inline constexpr int kPowerAt = 2 * kBlockEndChannels;
static_assert((kPowerAt + 1) * sizeof(float) <= kBlockEndRows * sizeof(uint4));

template <End kEnd, typename Tile, typename T>
__device__ void hold_line(const EndTensors<T>& tensors, int channels, int first_channel, float* line) {
  constexpr int kChannels = Tile::kChannels;
  const int thread = static_cast<int>(threadIdx.x), channel = first_channel + thread;
  if (kEnd == End::through && thread == 0) line[kPowerAt] = tensors.shift[channels];
  if (thread < kChannels) {
    if constexpr (kEnd == End::through) {
      line[thread] = tensors.shift[channel];
    } else {
      const float* const added = tensors.added_scale_shift;
      line[thread] = tensors.scale_shift[channels + channel] + (added ? added[channels + channel] : 0);
      line[kChannels + thread] = added ? added[channel] : 1;
    }
  }
}

// sums * factor + shift, of the line.
template <typename Tile>
__device__ void add_shift(WarpSums<Tile>& sums, float factor, const float* line) {
#pragma unroll
  for (int chunk = 0; chunk < Tile::kWarpChunks; ++chunk) {
    float shift[2];
    load<2>(line + channel_in_tile<Tile>(chunk), shift);
#pragma unroll
    for (int tile = 0; tile < Tile::kWarpTiles; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[tile][chunk][i] = sums[tile][chunk][i] * factor + shift[i % 2];
  }
}

// Adds the sums to what is held at their places, which is multiplied by its factors, if those aren't null;
// rounds once.
template <typename T, End kEnd, typename Tile>
__device__ void put_sums(const WarpSums<Tile>& sums, const float* factors, uint4* held) {
  constexpr int kRowChunks = Tile::kRowChunks, kChunks = Tile::kWarpChunks;
  const int lane = own_lane();
  held += Tile::first_row() * kRowChunks;
#pragma unroll
  for (int part = 0; part < 2 * Tile::kWarpTiles; ++part) {
    const auto pair_at = [&](int chunk) {
      return reinterpret_cast<T*>(held + part * 8 * kRowChunks +
                                  chunk_at<kRowChunks>(lane / 4, Tile::first_chunk() + chunk)) +
             lane % 4 * 2;
    };
    float values[kChunks][2] = {};  // all are read before any is stored
    if constexpr (!has_second_product(kEnd)) {
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) load<2>(pair_at(chunk), values[chunk]);
    }
    if (kEnd == End::forward && factors) {
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        float factor[2];
        load<2>(factors + channel_in_tile<Tile>(chunk), factor);
        values[chunk][0] *= factor[0], values[chunk][1] *= factor[1];
      }
    }
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      values[chunk][0] += sums[part / 2][chunk][part % 2 * 2];
      values[chunk][1] += sums[part / 2][chunk][part % 2 * 2 + 1];
      store<2>(pair_at(chunk), values[chunk]);
    }
  }
}

// The part of the tile that a thread stores: 8 channels of every kStoredRows-th pixel of its warp's.
template <typename Tile>
struct OwnPart {
  int row, chunk;  // the first pixel, and the chunk of its channels
  __device__ OwnPart()
      : row(Tile::first_row() + own_lane() / Tile::kWarpChunks),
        chunk(Tile::first_chunk() + own_lane() % Tile::kWarpChunks) {}
  // In a tile held in shared memory, `down` pixels below the first.
  __device__ int held_at(int down) const {
    constexpr int kRowChunks = Tile::kRowChunks;
    return (row - row % 8 + down / 8 * 8) * kRowChunks + chunk_at<kRowChunks>(row % 8 + down % 8, chunk);
  }
  // In a tensor, from the tile's first element on.
  __device__ std::int64_t at(int stride, int down) const {
    return std::int64_t{row + down} * stride + chunk * 8;
  }
};
template <typename T, typename Tile>
using OwnPixels = Packed<T, 8>[Tile::kOwnPixels];

// Loads the thread's pixels of a tensor shaped like out; zeros past its end.
template <typename T, typename Tile>
__device__ void load_own(const T* from, int stride, int rows, OwnPixels<T, Tile>& pixels) {
  const OwnPart<Tile> own;
  from += own.at(stride, 0);
#pragma unroll
  for (int i = 0; i < Tile::kOwnPixels; ++i, from += Tile::kStoredRows * stride)
    pixels[i] = own.row + i * Tile::kStoredRows < rows ? load_packed<8>(from) : Packed<T, 8>{};
}

// A bit for each of 8 elements that the ReLU lets pass: of `in`, or of scale * in + shift.
template <typename T>
__device__ unsigned passing(const Packed<T, 8>& in) {
  unsigned bits = 0;
#pragma unroll
  for (int c = 0; c < 8; ++c) bits |= static_cast<unsigned>(!(in.at(c) <= 0)) << c;
  return bits;
}
template <typename T>
__device__ unsigned passing(const Packed<T, 8>& in, const float (&scale)[8], const float (&shift)[8]) {
  unsigned bits = 0;
#pragma unroll
  for (int c = 0; c < 8; ++c) bits |= static_cast<unsigned>(!(scale[c] * in.at(c) + shift[c] <= 0)) << c;
  return bits;
}

// Stores the warp's part of the tile, masked: 128 bytes of a pixel per quarter of a warp, with 64
// channels 64. Leaves what the thread sums in `sums`, [kSummingThreads, kSums, kChannels]: the gradient, then
// its products with the norms' inputs. `tensors` begin at the tile.
template <typename T, End kEnd, typename Tile, int kSums>
__device__ void store_masked(const EndTensors<T>& tensors, const uint4* held, const unsigned char* bits,
                             int stride, int rows, const uint4* norm_in,
                             const OwnPixels<T, Tile>& shortcut_in, float* sums) {
  const OwnPart<Tile> own;
  float center[8] = {}, shortcut_center[8] = {}, scale[8] = {}, shift[8] = {}, own_sums[kSums + 1][8] = {};
  if constexpr (kSums > 1) load<8>(tensors.means.norm + own.chunk * 8, center);
  if constexpr (kSums > 2) load<8>(tensors.means.shortcut + own.chunk * 8, shortcut_center);
  if constexpr (kEnd == End::through && kSums > 0) {
    load<8>(tensors.scale_shift + own.chunk * 8, scale);
    load<8>(tensors.scale_shift + stride + own.chunk * 8, shift);
  }
#pragma unroll
  for (int i = 0; i < Tile::kOwnPixels; ++i) {
    const int down = i * Tile::kStoredRows;
    const uint4 values = held[own.held_at(down)];
    unsigned mask = 0xff;
    if constexpr (kEnd == End::gradient)
      mask = bits[(own.row + down) * Tile::kRowChunks + own.chunk];
    else if constexpr (leaves_mask(kEnd))
      mask = passing(load_packed<8>(reinterpret_cast<const T*>(&values)));
    else if constexpr (kSums > 0)
      mask = passing(load_packed<8>(reinterpret_cast<const T*>(norm_in + own.held_at(down))), scale, shift);
    if (own.row + down >= rows) continue;
    const uint4 masked = make_uint4(values.x & mask_of_pair(mask), values.y & mask_of_pair(mask >> 2),
                                    values.z & mask_of_pair(mask >> 4), values.w & mask_of_pair(mask >> 6));
    *reinterpret_cast<uint4*>(tensors.out + own.at(stride, down)) = masked;
    if constexpr (leaves_mask(kEnd))
      tensors.made_mask[own.at(stride, down) / 8] = static_cast<unsigned char>(mask);
    if constexpr (kSums > 0) {
      const auto gradient = load_packed<8>(reinterpret_cast<const T*>(&masked));
#pragma unroll
      for (int c = 0; c < 8; ++c) own_sums[0][c] += gradient.at(c);
      if constexpr (kSums > 1) {
        const auto in = load_packed<8>(reinterpret_cast<const T*>(norm_in + own.held_at(down)));
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          own_sums[1][c] += gradient.at(c) * (in.at(c) - center[c]);
          if constexpr (kSums > 2)
            own_sums[2][c] += gradient.at(c) * (shortcut_in[i].at(c) - shortcut_center[c]);
        }
      }
    }
  }
  sums += (own.row / Tile::kWarpRows * Tile::kStoredRows + own.row % Tile::kStoredRows) * kSums *
              Tile::kChannels +
          own.chunk * 8;
#pragma unroll
  for (int k = 0; k < kSums; ++k) store<8>(sums + k * Tile::kChannels, own_sums[k]);
}

// Over the tile: partials [sums, stride].
template <typename Tile, int kSums>
__device__ void leave_sums(const float* sums, int stride, float* partials) {
  constexpr int kChannels = Tile::kChannels;
#pragma unroll
  for (int part = 0; part < kSums * kChannels; part += kBlockEndThreads) {
    const int at = part + static_cast<int>(threadIdx.x);
    if (at >= kSums * kChannels) return;
    float total = 0;
#pragma unroll
    for (int thread = 0; thread < Tile::kSummingThreads; ++thread)
      total += sums[thread * kSums * kChannels + at];
    partials[at / kChannels * stride + at % kChannels] = total;
  }
}

}  // namespace plumb::cuda
