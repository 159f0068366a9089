#include "kernels/cuda/block_end.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/finish_sums.h"
#include "kernels/cuda/norm_coefficients.h"
#include "kernels/cuda/norm_tile.h"

namespace plumb::cuda {
namespace {

// In shared memory lie chunks of 16 bytes, 8 elements.
constexpr int kFactorChunks = kBlockEndOutputs / 8;  // of a pixel's output channels in a step
constexpr int kTileChunks = kBlockEndChannels / 8;   // of a pixel's or a weight's channels
constexpr int kWarpChunks = kTileChunks / 2;
constexpr int kWarpTiles = kBlockEndRows / 64;                   // of 16 pixels
constexpr int kStoredRows = 32 / kWarpChunks;                    // of a warp, at once
constexpr int kSummingThreads = kBlockEndThreads / kTileChunks;  // that sum the same channels

struct NormMeans {
  const float *norm, *shortcut;  // [channels]
};

__device__ int own_lane() {
  return static_cast<int>(threadIdx.x % 32);
}
__device__ int own_warp() {
  return static_cast<int>(threadIdx.x / 32);
}

// Where a row's chunk lies, so that a column of 8 rows spreads over all banks; alike in the next 8 rows.
template <int kRowChunks>
__device__ constexpr int chunk_at(int row, int chunk) {
  return row * kRowChunks + (chunk ^ (row & 7));
}

// Starts to copy kRows rows of kRowChunks chunks; the last of `rows` stands for those behind it.
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

// The mask of two adjacent elements, 16 bits each, from their bits.
__device__ constexpr unsigned mask_of_pair(unsigned bits) {
  return (bits & 1) * 0xffffU | (bits >> 1 & 1) * 0xffff0000U;
}

// A warp's sums: 16-pixel tiles x 8 tiles of 8 channels, as multiply_add() shares them out among lanes.
using WarpSums = float[kWarpTiles][8][4];

// += d_out weight of one step.
template <typename T>
__device__ void multiply_step(const uint4* d_out, const uint4* weights, WarpSums& sums) {
  const int lane = own_lane(), warp = own_warp();
  d_out += warp / 2 * 16 * kWarpTiles * kFactorChunks;
  weights += warp % 2 * kWarpChunks;
#pragma unroll
  for (int part = 0; part < kBlockEndOutputs / 16; ++part) {
    unsigned pixels[kWarpTiles][4];
#pragma unroll
    for (int tile = 0; tile < kWarpTiles; ++tile)
      gpu::load_matrices(pixels[tile], d_out + tile * 16 * kFactorChunks +
                                           chunk_at<kFactorChunks>(lane % 16, part * 2 + lane / 16));
#pragma unroll
    for (int pair = 0; pair < kWarpChunks / 2; ++pair) {
      unsigned factors[4];
      gpu::load_transposed_matrices(factors, weights + part * 16 * kTileChunks +
                                                 chunk_at<kTileChunks>(lane % 16, pair * 2 + lane / 16));
#pragma unroll
      for (int tile = 0; tile < kWarpTiles; ++tile) {
        gpu::multiply_add<T>(sums[tile][2 * pair], pixels[tile], factors[0], factors[1]);
        gpu::multiply_add<T>(sums[tile][2 * pair + 1], pixels[tile], factors[2], factors[3]);
      }
    }
  }
}

// Adds the sums to the gradients held at their places; rounds once.
template <typename T>
__device__ void add_to_held(const WarpSums& sums, uint4* held) {
  const int lane = own_lane(), warp = own_warp();
  held += warp / 2 * 16 * kWarpTiles * kTileChunks + warp % 2 * kWarpChunks;
#pragma unroll
  for (int part = 0; part < 2 * kWarpTiles; ++part) {
    const auto pair_at = [&](int chunk) {
      return reinterpret_cast<T*>(held + part * 8 * kTileChunks + chunk_at<kTileChunks>(lane / 4, chunk)) +
             lane % 4 * 2;
    };
    float values[kWarpChunks][2];  // all are read before any is stored
#pragma unroll
    for (int chunk = 0; chunk < kWarpChunks; ++chunk) load<2>(pair_at(chunk), values[chunk]);
#pragma unroll
    for (int chunk = 0; chunk < kWarpChunks; ++chunk) {
      values[chunk][0] += sums[part / 2][chunk][part % 2 * 2];
      values[chunk][1] += sums[part / 2][chunk][part % 2 * 2 + 1];
      store<2>(pair_at(chunk), values[chunk]);
    }
  }
}

// The part of the tile that a thread stores: 8 channels of every fourth pixel of its warp's.
struct OwnPart {
  int row, chunk;  // the first pixel, and the chunk of its channels
  __device__ OwnPart()
      : row(own_warp() / 2 * 16 * kWarpTiles + own_lane() / kWarpChunks),
        chunk(own_warp() % 2 * kWarpChunks + own_lane() % kWarpChunks) {}
  // In a tile held in shared memory, `down` pixels below the first.
  __device__ int held_at(int down) const {
    return (row - row % 8 + down / 8 * 8) * kTileChunks + chunk_at<kTileChunks>(row % 8 + down % 8, chunk);
  }
  // In a tensor, from the tile's first element on.
  __device__ std::int64_t at(int stride, int down) const {
    return std::int64_t{row + down} * stride + chunk * 8;
  }
};
constexpr int kOwnPixels = 16 * kWarpTiles / kStoredRows;
template <typename T>
using OwnPixels = Packed<T, 8>[kOwnPixels];

// Loads the thread's pixels of a tensor shaped like d_in; zeros past its end.
template <typename T>
__device__ void load_own(const T* from, int stride, int rows, OwnPixels<T>& pixels) {
  const OwnPart own;
  from += own.at(stride, 0);
#pragma unroll
  for (int i = 0; i < kOwnPixels; ++i, from += kStoredRows * stride)
    pixels[i] = own.row + i * kStoredRows < rows ? load_packed<8>(from) : Packed<T, 8>{};
}

// Stores the warp's part of the tile, masked: 128 bytes of a pixel per quarter of a warp. With norms, leaves
// what the thread sums for them in `sums`, [kSummingThreads, block_end_sums(kNorms), kBlockEndChannels].
template <typename T, int kNorms>
__device__ void store_masked(const uint4* held, const unsigned char* bits, int stride, int rows, T* d_in,
                             const uint4* norm_in, const OwnPixels<T>& shortcut_in, const NormMeans& means,
                             float* sums) {
  constexpr int kSums = block_end_sums(kNorms);
  const OwnPart own;
  float center[8] = {}, shortcut_center[8] = {}, own_sums[kSums + 1][8] = {};
  if constexpr (kNorms > 0) load<8>(means.norm + own.chunk * 8, center);
  if constexpr (kNorms > 1) load<8>(means.shortcut + own.chunk * 8, shortcut_center);
#pragma unroll
  for (int i = 0; i < kOwnPixels; ++i) {
    const int down = i * kStoredRows;
    const uint4 values = held[own.held_at(down)];
    const unsigned mask = bits[(own.row + down) * kTileChunks + own.chunk];
    if (own.row + down >= rows) continue;
    const uint4 masked = make_uint4(values.x & mask_of_pair(mask), values.y & mask_of_pair(mask >> 2),
                                    values.z & mask_of_pair(mask >> 4), values.w & mask_of_pair(mask >> 6));
    *reinterpret_cast<uint4*>(d_in + own.at(stride, down)) = masked;
    if constexpr (kNorms > 0) {
      const auto gradient = load_packed<8>(reinterpret_cast<const T*>(&masked));
      const auto in = load_packed<8>(reinterpret_cast<const T*>(norm_in + own.held_at(down)));
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        own_sums[0][c] += gradient.at(c);
        own_sums[1][c] += gradient.at(c) * (in.at(c) - center[c]);
        if constexpr (kNorms > 1)
          own_sums[2][c] += gradient.at(c) * (shortcut_in[i].at(c) - shortcut_center[c]);
      }
    }
  }
  sums += (own.row / (16 * kWarpTiles) * kStoredRows + own.row % kStoredRows) * kSums * kBlockEndChannels +
          own.chunk * 8;
#pragma unroll
  for (int k = 0; k < kSums; ++k) store<8>(sums + k * kBlockEndChannels, own_sums[k]);
}

// Over the tile: partials [sums, stride].
template <int kSums>
__device__ void leave_sums(const float* sums, int stride, float* partials) {
#pragma unroll
  for (int part = 0; part < kSums * kBlockEndChannels; part += kBlockEndThreads) {
    const int at = part + static_cast<int>(threadIdx.x);
    if (at >= kSums * kBlockEndChannels) return;
    float total = 0;
#pragma unroll
    for (int thread = 0; thread < kSummingThreads; ++thread)
      total += sums[thread * kSums * kBlockEndChannels + at];
    partials[at / kBlockEndChannels * stride + at % kBlockEndChannels] = total;
  }
}

// Blocks of the same pixels are neighbours, so d_out comes from memory once. Per element of d_in: reads 2
// bytes of `added`, a bit of the mask and 2 * outputs / channels bytes of d_out, writes 2; for each norm 2
// more of its input, and 4 bytes for each sum of a channel over 128 pixels. Bound by memory up to 128 output
// channels; above, d_out and the weights, which each block reads from the L2 cache, take as long.
template <typename T, int kNorms>
__global__ void __launch_bounds__(kBlockEndThreads, 2)
    block_end(BlockEndShape shape, const T* d_out, const T* weight, const T* added, const unsigned char* mask,
              T* d_in, const T* norm_in, const T* shortcut_in, NormMeans means, float* partials) {
  constexpr int kDOutChunks = kBlockEndRows * kFactorChunks,
                kStageChunks = kDOutChunks + kBlockEndOutputs * kTileChunks;
  uint4* const held = gpu::dynamic_shared<uint4>();
  uint4* const bits = held + kBlockEndRows * kTileChunks;
  uint4* const stages = bits + kBlockEndRows;
  const auto across = static_cast<unsigned>(shape.channels / kBlockEndChannels);
  const std::int64_t first_pixel = std::int64_t{blockIdx.x / across} * kBlockEndRows;
  const int first_channel = static_cast<int>(blockIdx.x % across) * kBlockEndChannels;
  const int rows = static_cast<int>(min(std::int64_t{kBlockEndRows}, shape.pixels - first_pixel));
  const std::int64_t first = first_pixel * shape.channels + first_channel;

  const bool has_pixels = own_warp() / 2 * 16 * kWarpTiles < rows;
  const int steps = shape.outputs / kBlockEndOutputs;
  // Behind the last step's factors comes the norm's input.
  const auto hold_step = [&](int step) {
    uint4* const stage = stages + step % 2 * kStageChunks;
    if (step >= steps) {
      if (kNorms > 0) hold_rows<kTileChunks, kBlockEndRows>(norm_in + first, shape.channels, rows, stage);
      return;
    }
    const int output = step * kBlockEndOutputs;
    hold_rows<kFactorChunks, kBlockEndRows>(d_out + first_pixel * shape.outputs + output, shape.outputs, rows,
                                            stage);
    hold_rows<kTileChunks, kBlockEndOutputs>(weight + output * shape.channels + first_channel, shape.channels,
                                             kBlockEndOutputs, stage + kDOutChunks);
  };
  hold_step(0);
  gpu::end_copy_group();
  hold_step(1);
  gpu::end_copy_group();
  hold_rows<kTileChunks, kBlockEndRows>(added + first, shape.channels, rows, held);
  if (threadIdx.x < static_cast<unsigned>(rows))
    gpu::copy_to_shared(bits + threadIdx.x,
                        mask + (first + static_cast<std::int64_t>(threadIdx.x) * shape.channels) / 8, true);
  gpu::end_copy_group();

  WarpSums sums = {};
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    if (step == 0)
      gpu::wait_for_copy_groups<2>();
    else if (step == 1)
      gpu::wait_for_copy_groups<1>();
    else
      gpu::wait_for_copy_groups<0>();
    __syncthreads();
    if (step > 0) {
      hold_step(step + 1);
      gpu::end_copy_group();
    }
    const uint4* const stage = stages + step % 2 * kStageChunks;
    if (has_pixels) multiply_step<T>(stage, stage + kDOutChunks, sums);
  }
  OwnPixels<T> own_shortcut_in;
  if constexpr (kNorms > 1) load_own(shortcut_in + first, shape.channels, rows, own_shortcut_in);
  gpu::wait_for_copy_groups<0>();
  __syncthreads();
  add_to_held<T>(sums, held);
  __syncwarp();
  if constexpr (kNorms > 0) means.norm += first_channel;
  if constexpr (kNorms > 1) means.shortcut += first_channel;
  auto* const left = reinterpret_cast<float*>(stages + (steps - 1) % 2 * kStageChunks);
  store_masked<T, kNorms>(held, reinterpret_cast<const unsigned char*>(bits), shape.channels, rows,
                          d_in + first, stages + steps % 2 * kStageChunks, own_shortcut_in, means, left);
  if constexpr (kNorms > 0) {
    constexpr int kSums = block_end_sums(kNorms);
    __syncthreads();
    leave_sums<kSums>(left, shape.channels,
                      partials + std::int64_t{blockIdx.x / across} * kSums * shape.channels + first_channel);
  }
}

// A block finishes the sums of 8 channels, in a fixed order. Reads 8 bytes (12 for two norms) per channel and
// row of tiles from the L2 cache: bound by its latency.
template <int kNorms>
__global__ void __launch_bounds__(kFinishedChannels* kFinishingRows, 1)
    finish_norm_sums(const float* partials, int rows, std::int64_t pixels, int channels, NormBackward norm,
                     NormBackward shortcut) {
  constexpr int kSums = block_end_sums(kNorms);
  const int channel = static_cast<int>(blockIdx.x * kFinishedChannels + threadIdx.x);
  FinishedSums<kSums> sums;
#pragma unroll 4
  for (int row = static_cast<int>(threadIdx.y); row < rows; row += kFinishingRows) {
    const float* const from = partials + std::int64_t{row} * kSums * channels + channel;
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums.of[i] += from[i * channels];
  }
  merge_rows(sums);
  if (threadIdx.y > 0) return;
  NormGradientSums{sums.of[0], sums.of[1]}.settle(norm, pixels, channels, channel);
  if constexpr (kNorms > 1)
    NormGradientSums{sums.of[0], sums.of[2]}.settle(shortcut, pixels, channels, channel);
}

template <typename T, int kNorms>
void launch_for_norms(const BlockEndShape& shape, const BlockEndOperands& operands, cudaStream_t stream) {
  const std::int64_t tiles = block_end_rows(shape) * (shape.channels / kBlockEndChannels);
  gpu::launch(block_end<T, kNorms>, dim3(blocks_for(tiles, 1)), dim3(kBlockEndThreads),
              static_cast<std::size_t>(block_end_shared_bytes(shape.outputs, kNorms)), stream, shape,
              as<T>(operands.d_out), as<T>(operands.weight), as<T>(operands.added),
              as<unsigned char>(operands.mask), as<T>(operands.d_in), as<T>(operands.norm_in),
              as<T>(operands.shortcut_in), NormMeans{operands.norm.mean, operands.shortcut.mean},
              operands.partials);
  if constexpr (kNorms > 0) {
    const dim3 block(kFinishedChannels, kFinishingRows);
    gpu::launch(finish_norm_sums<kNorms>, dim3(blocks_for(shape.channels, kFinishedChannels)), block,
                merge_bytes<FinishedSums<block_end_sums(kNorms)>>(block), stream, operands.partials,
                static_cast<int>(block_end_rows(shape)), shape.pixels, shape.channels, operands.norm,
                operands.shortcut);
  }
}

}  // namespace

void launch_block_end(DType dtype, const BlockEndShape& shape, const BlockEndOperands& operands,
                      cudaStream_t stream) {
  with_half_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    if (operands.shortcut_in)
      launch_for_norms<T, 2>(shape, operands, stream);
    else if (operands.norm_in)
      launch_for_norms<T, 1>(shape, operands, stream);
    else
      launch_for_norms<T, 0>(shape, operands, stream);
  });
}

}  // namespace plumb::cuda
