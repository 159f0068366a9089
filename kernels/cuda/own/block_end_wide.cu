#include "kernels/cuda/own/block_end_kernel.h"

namespace plumb::cuda {
namespace {

using WalkTile = EndTile<kWideChannels, kWalkRows>;
static_assert(WalkTile::kWarpChunks * 4 == gpu::kWideSums);

// Copies what belongs to the thread's elements of a tile. Rows past `rows` keep what they had.
template <typename T>
__device__ void hold_own(const T* from, int stride, int rows, uint4* held) {
  const OwnPart<WalkTile> own;
#pragma unroll
  for (int down = 0; down < WalkTile::kWarpRows; down += WalkTile::kStoredRows)
    if (own.row + down < rows)
      gpu::copy_to_shared(held + own.held_at(down), from + own.at(stride, down), true);
}

// A block holds the weights of 256 channels and walks over tiles of 64 pixels. The next tile's inputs are
// copied from one barrier to the next. Each warp copies its part of the next shortcut to where it has read
// the last one, while a tile is multiplied. Per element of out: reads 2 bytes of the shortcut and 2 from the
// L2 cache of the inputs, of which a fourth comes from memory with 1024 channels; writes 2 bytes and a bit.
// 256 multiply-adds. By count bound by memory.
template <typename T>
__global__ void __launch_bounds__(kBlockEndThreads, 1)
    block_end_walk(BlockEndShape shape, EndTensors<T> tensors) {
  uint4* const weights = gpu::dynamic_shared<uint4>();
  uint4* const inputs = weights + kWalkWeightChunks;
  uint4* const held = inputs + 2 * kWalkInputChunks;
  auto* const line = reinterpret_cast<float*>(held + kWalkRows * kWideChunks);
  const auto across = static_cast<unsigned>(shape.channels / kWideChannels);
  const int first_channel = static_cast<int>(blockIdx.x % across) * kWideChannels;
  const std::int64_t tiles = (shape.pixels + kWalkRows - 1) / kWalkRows, step = gridDim.x / across;
  const auto rows_of = [&](std::int64_t tile) {
    return static_cast<int>(min(std::int64_t{kWalkRows}, shape.pixels - tile * kWalkRows));
  };
  const auto first = [&](std::int64_t tile) { return tile * kWalkRows * shape.channels + first_channel; };
  const auto hold_inputs = [&](std::int64_t tile, int turn) {
    if (tile < tiles)
      hold_planes<kWideChunks, kWalkRows, 1>(tensors.left + tile * kWalkRows * kWideChannels, kWideChannels,
                                             rows_of(tile), inputs + turn * kWalkInputChunks);
    gpu::end_copy_group();
  };
  const auto hold_added = [&](std::int64_t tile) {
    if (tile < tiles) hold_own(tensors.added + first(tile), shape.channels, rows_of(tile), held);
    gpu::end_copy_group();
  };
  line[threadIdx.x] = tensors.scale_shift[shape.channels + first_channel + static_cast<int>(threadIdx.x)];
  hold_planes<kWideChunks, kWideChannels, 1>(tensors.weight + first_channel, shape.channels, kWideChannels,
                                             weights);
  std::int64_t tile = blockIdx.x / across;
  hold_inputs(tile, 0);
  hold_added(tile);
#pragma unroll 1
  for (int turn = 0; tile < tiles; tile += step, turn ^= 1) {
    gpu::wait_for_copy_groups<1>();  // all but the shortcut
    gpu::share_with_products();
    __syncthreads();  // the tile before was multiplied
    hold_inputs(tile + step, turn ^ 1);
    WarpSums<WalkTile> sums = {};
    add_shift<WalkTile>(sums, 0, line);
    multiply_planes<T, WalkTile, kWideChannels>(inputs + turn * kWalkInputChunks, weights, sums);
    gpu::wait_for_copy_groups<1>();  // all but the next inputs
    __syncwarp();
    put_sums<T, End::forward, WalkTile>(sums, nullptr, held);
    __syncwarp();
    EndTensors<T> at_tile;
    at_tile.out = tensors.out + first(tile);
    at_tile.made_mask = tensors.made_mask + first(tile) / 8;
    store_masked<T, End::forward, WalkTile, 0>(at_tile, held, nullptr, shape.channels, rows_of(tile), nullptr,
                                               {}, nullptr);
    hold_added(tile + step);
  }
}

}  // namespace

void launch_block_end_walk(DType dtype, const BlockEndShape& shape, int multiprocessors,
                           const EndAddresses& tensors, cudaStream_t stream) {
  with_half_type_of(dtype, [&]<typename T>(T) {
    gpu::launch(block_end_walk<T>, dim3(blocks_for(walk_blocks(shape, multiprocessors), 1)),
                dim3(kBlockEndThreads), kWalkSharedBytes, stream, shape, tensors_of<T>(tensors));
  });
}

void launch_wide_block_end_through(DType dtype, const BlockEndShape& shape, const EndAddresses& tensors,
                                   const NormBackward& norm, cudaStream_t stream) {
  with_half_type_of(
      dtype, [&]<typename T>(T) { launch_through<T, EndTile<kWideChannels>>(shape, tensors, norm, stream); });
}

}  // namespace plumb::cuda
