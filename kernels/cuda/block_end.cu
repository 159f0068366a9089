#include <type_traits>

#include "kernels/cuda/block_end.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/norm_coefficients.h"
#include "kernels/cuda/norm_tile.h"

namespace plumb::cuda {
namespace {

// In shared memory lie chunks of 16 bytes, 8 elements.
constexpr int kFactorChunks = kBlockEndOutputs / 8;  // of a pixel's output channels in a step
constexpr int kTileChunks = kBlockEndChannels / 8;   // of a pixel's or a weight's channels
constexpr int kWarpChunks = kTileChunks / 2;
constexpr int kWarpTiles = kBlockEndRows / 64;                   // of 16 pixels
constexpr int kSummingThreads = kBlockEndThreads / kTileChunks;  // that sum the same channels
static_assert(kBlockEndThreads == kNormSums * kBlockEndChannels, "a thread finishes one sum of a tile");

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

// Stores the warp's part of the tile, masked: 128 bytes of a pixel per quarter of a warp. With a norm, leaves
// what the thread sums for it over its pixels of 8 channels in `sums`, [kSummingThreads, kNormSums,
// channels].
template <typename T, bool kForNorm>
__device__ void store_masked(const uint4* held, const unsigned char* bits, int stride, int rows, T* d_in,
                             const uint4* norm_in, const float* mean, float* sums) {
  const int lane = own_lane(), warp = own_warp();
  const int first_row = warp / 2 * 16 * kWarpTiles, column = warp % 2 * kWarpChunks;
  const int row = lane / kWarpChunks, chunk = lane % kWarpChunks;
  float center[8] = {}, gradients[8] = {}, products[8] = {};
  if constexpr (kForNorm) {
    load<8>(mean + (column + chunk) * 8, center);
    norm_in += first_row * kTileChunks + column;
    sums += (warp / 2 * 4 + row) * kNormSums * kBlockEndChannels + (column + chunk) * 8;
  }
  held += first_row * kTileChunks + column;
  bits += (first_row + row) * kTileChunks + column + chunk;
  d_in += std::int64_t{first_row + row} * stride + (column + chunk) * 8;
  rows -= first_row + row;
#pragma unroll
  for (int down = 0; down < 16 * kWarpTiles; down += 4) {
    const int at = down / 8 * 8 * kTileChunks + chunk_at<kTileChunks>(row + down % 8, chunk);
    const uint4 values = held[at];
    const unsigned mask = bits[down * kTileChunks];
    if (down >= rows) continue;
    const uint4 masked = make_uint4(values.x & mask_of_pair(mask), values.y & mask_of_pair(mask >> 2),
                                    values.z & mask_of_pair(mask >> 4), values.w & mask_of_pair(mask >> 6));
    *reinterpret_cast<uint4*>(d_in + std::int64_t{down} * stride) = masked;
    if constexpr (kForNorm) {
      const auto gradient = load_packed<8>(reinterpret_cast<const T*>(&masked));
      const auto in = load_packed<8>(reinterpret_cast<const T*>(norm_in + at));
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        gradients[i] += gradient.at(i);
        products[i] += gradient.at(i) * (in.at(i) - center[i]);
      }
    }
  }
  if constexpr (kForNorm) {
    store<8>(sums, gradients);
    store<8>(sums + kBlockEndChannels, products);
  }
}

// Over the tile: a thread adds up one sum of one channel, partials [2, stride].
__device__ void leave_sums(const float* sums, int stride, float* partials) {
  const int at = static_cast<int>(threadIdx.x);
  float total = 0;
#pragma unroll
  for (int thread = 0; thread < kSummingThreads; ++thread) total += sums[thread * kBlockEndThreads + at];
  partials[at / kBlockEndChannels * stride + at % kBlockEndChannels] = total;
}

// Blocks of the same pixels are neighbours, so d_out comes from memory once. Per element of d_in: reads 2
// bytes of `added`, a bit of the mask and 2 * outputs / channels bytes of d_out, writes 2; with a norm 2 more
// of its input, and 8 bytes of sums per channel and 128 pixels. Bound by memory up to 128 output channels;
// above, d_out and the weights, which each block reads from the L2 cache, take as long.
template <typename T, bool kForNorm>
__global__ void __launch_bounds__(kBlockEndThreads, 2)
    block_end(BlockEndShape shape, const T* d_out, const T* weight, const T* added, const unsigned char* mask,
              T* d_in, const T* norm_in, const float* mean, float* partials) {
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
  d_out += first_pixel * shape.outputs;
  weight += first_channel;

  const bool has_pixels = own_warp() / 2 * 16 * kWarpTiles < rows;
  const int steps = shape.outputs / kBlockEndOutputs;
  // Behind the last step's factors comes the norm's input.
  const auto hold_step = [&](int step) {
    uint4* const stage = stages + step % 2 * kStageChunks;
    if (step >= steps) {
      if (kForNorm) hold_rows<kTileChunks, kBlockEndRows>(norm_in + first, shape.channels, rows, stage);
      return;
    }
    hold_rows<kFactorChunks, kBlockEndRows>(d_out + step * kBlockEndOutputs, shape.outputs, rows, stage);
    hold_rows<kTileChunks, kBlockEndOutputs>(weight + step * kBlockEndOutputs * shape.channels,
                                             shape.channels, kBlockEndOutputs, stage + kDOutChunks);
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
  gpu::wait_for_copy_groups<0>();
  __syncthreads();
  add_to_held<T>(sums, held);
  __syncwarp();
  auto* const left = reinterpret_cast<float*>(stages + (steps - 1) % 2 * kStageChunks);
  store_masked<T, kForNorm>(held, reinterpret_cast<const unsigned char*>(bits), shape.channels, rows,
                            d_in + first, stages + steps % 2 * kStageChunks,
                            kForNorm ? mean + first_channel : nullptr, left);
  if constexpr (kForNorm) {
    __syncthreads();
    leave_sums(left, shape.channels,
               partials + std::int64_t{blockIdx.x / across} * kNormSums * shape.channels + first_channel);
  }
}

// A block finishes the sums of 8 channels, in a fixed order. Reads 8 bytes per channel and row of tiles from
// the L2 cache: bound by its latency.
__global__ void __launch_bounds__(kFinishedChannels* kFinishingRows, 1)
    finish_norm_sums(const float* partials, int rows, std::int64_t pixels, int channels, NormBackward into) {
  const int channel = static_cast<int>(blockIdx.x * kFinishedChannels + threadIdx.x);
  NormGradientSums sums;
#pragma unroll 4
  for (int row = static_cast<int>(threadIdx.y); row < rows; row += kFinishingRows) {
    const float* const from = partials + std::int64_t{row} * kNormSums * channels + channel;
    sums.merge({from[0], from[channels]});
  }
  merge_rows(sums);
  if (threadIdx.y == 0) sums.settle(into, pixels, channels, channel);
}

}  // namespace

void launch_block_end(DType dtype, const BlockEndShape& shape, const BlockEndOperands& operands,
                      cudaStream_t stream) {
  const std::int64_t tiles = block_end_rows(shape) * (shape.channels / kBlockEndChannels);
  const bool for_norm = operands.norm_in != nullptr;
  with_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    if constexpr (!std::is_same_v<T, float>)
      gpu::launch(for_norm ? block_end<T, true> : block_end<T, false>, dim3(blocks_for(tiles, 1)),
                  dim3(kBlockEndThreads),
                  static_cast<std::size_t>(block_end_shared_bytes(shape.outputs, for_norm)), stream, shape,
                  as<T>(operands.d_out), as<T>(operands.weight), as<T>(operands.added),
                  as<unsigned char>(operands.mask), as<T>(operands.d_in), as<T>(operands.norm_in),
                  operands.norm.mean, operands.partials);
    else
      throw std::logic_error("the kernel for a block's end is for half precision");
  });
  if (!for_norm) return;
  const dim3 block(kFinishedChannels, kFinishingRows);
  gpu::launch(finish_norm_sums, dim3(blocks_for(shape.channels, kFinishedChannels)), block,
              merge_bytes<NormGradientSums>(block), stream, operands.partials,
              static_cast<int>(block_end_rows(shape)), shape.pixels, shape.channels, operands.norm);
}

}  // namespace plumb::cuda
