#include <type_traits>

#include "kernels/cuda/block_end.h"
#include "kernels/cuda/elements.h"

namespace plumb::cuda {
namespace {

// In shared memory lie chunks of 16 bytes, 8 elements.
constexpr int kFactorChunks = kBlockEndOutputs / 8;  // of a pixel's output channels in a step
constexpr int kTileChunks = kBlockEndChannels / 8;   // of a pixel's or a weight's channels
constexpr int kWarpChunks = kTileChunks / 2;
constexpr int kWarpTiles = kBlockEndRows / 64;  // of 16 pixels

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

// Stores the warp's part of the tile, masked: 128 bytes of a pixel per quarter of a warp.
template <typename T>
__device__ void store_masked(const uint4* held, const unsigned char* bits, int stride, int rows, T* d_in) {
  const int lane = own_lane(), warp = own_warp();
  const int first_row = warp / 2 * 16 * kWarpTiles, column = warp % 2 * kWarpChunks;
  const int row = lane / kWarpChunks, chunk = lane % kWarpChunks;
  held += first_row * kTileChunks + column;
  bits += (first_row + row) * kTileChunks + column + chunk;
  d_in += std::int64_t{first_row + row} * stride + (column + chunk) * 8;
  rows -= first_row + row;
#pragma unroll
  for (int down = 0; down < 16 * kWarpTiles; down += 4) {
    const uint4 values = held[down / 8 * 8 * kTileChunks + chunk_at<kTileChunks>(row + down % 8, chunk)];
    const unsigned mask = bits[down * kTileChunks];
    if (down < rows)
      *reinterpret_cast<uint4*>(d_in + std::int64_t{down} * stride) =
          make_uint4(values.x & mask_of_pair(mask), values.y & mask_of_pair(mask >> 2),
                     values.z & mask_of_pair(mask >> 4), values.w & mask_of_pair(mask >> 6));
  }
}

// Blocks of the same pixels are neighbours, so d_out comes from memory once. Per element of d_in: reads 2
// bytes of `added`, a bit of the mask and 2 * outputs / channels bytes of d_out, writes 2. Bound by memory up
// to 128 output channels; above, d_out and the weights, which each block reads from the L2 cache, take as
// long.
template <typename T>
__global__ void __launch_bounds__(kBlockEndThreads, 2)
    block_end(BlockEndShape shape, const T* d_out, const T* weight, const T* added, const unsigned char* mask,
              T* d_in) {
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
  const auto hold_factors = [&](int step) {
    uint4* const stage = stages + step % 2 * kStageChunks;
    hold_rows<kFactorChunks, kBlockEndRows>(d_out + step * kBlockEndOutputs, shape.outputs, rows, stage);
    hold_rows<kTileChunks, kBlockEndOutputs>(weight + step * kBlockEndOutputs * shape.channels,
                                             shape.channels, kBlockEndOutputs, stage + kDOutChunks);
  };
  hold_factors(0);
  gpu::end_copy_group();
  if (steps > 1) hold_factors(1);
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
    if (step > 0 && step + 1 < steps) {
      hold_factors(step + 1);
      gpu::end_copy_group();
    }
    const uint4* const stage = stages + step % 2 * kStageChunks;
    if (has_pixels) multiply_step<T>(stage, stage + kDOutChunks, sums);
  }
  gpu::wait_for_copy_groups<0>();
  __syncthreads();
  add_to_held<T>(sums, held);
  __syncwarp();
  store_masked<T>(held, reinterpret_cast<const unsigned char*>(bits), shape.channels, rows, d_in + first);
}

}  // namespace

void launch_block_end(DType dtype, const BlockEndShape& shape, const BlockEndOperands& operands,
                      cudaStream_t stream) {
  const std::int64_t tiles = divide_up(shape.pixels, kBlockEndRows) * (shape.channels / kBlockEndChannels);
  with_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    if constexpr (!std::is_same_v<T, float>)
      gpu::launch(block_end<T>, dim3(blocks_for(tiles, 1)), dim3(kBlockEndThreads),
                  static_cast<std::size_t>(block_end_shared_bytes(shape.outputs)), stream, shape,
                  as<T>(operands.d_out), as<T>(operands.weight), as<T>(operands.added),
                  as<unsigned char>(operands.mask), as<T>(operands.d_in));
    else
      throw std::logic_error("the kernel for a block's end is for half precision");
  });
}

}  // namespace plumb::cuda
