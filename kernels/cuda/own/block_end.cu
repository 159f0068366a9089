#include "kernels/cuda/own/block_end.h"
#include "kernels/cuda/own/block_end_tile.h"
#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/finish_sums.h"

namespace plumb::cuda {
namespace {

// Blocks of the same pixels are neighbors, so the left factors come from memory once. Per element of out:
// reads 2 bytes of `added` and 2 * outputs / channels of the left factors, writes 2; reads or writes a bit of
// the mask; for each norm 2 more of its input, and 4 bytes for each sum of a channel over 128 pixels. Bound
// by memory up to 128 outputs; above, the factors, which each block reads from the L2 cache, take as long.
template <typename T, End kEnd, typename Tile, int kSums>
__global__ void __launch_bounds__(kBlockEndThreads, 2) block_end(BlockEndShape shape, EndTensors<T> tensors) {
  constexpr int kChannels = Tile::kChannels, kRowChunks = Tile::kRowChunks,
                kStages = block_end_stages(kChannels);
  constexpr int kLeftChunks = kFactorChunks * kBlockEndRows;
  constexpr bool kAdds = !has_second_product(kEnd);
  uint4* const bits = gpu::dynamic_shared<uint4>();
  auto* const line = reinterpret_cast<float*>(bits);
  // The stages are taken in turn.
  const auto stage = [stages = bits + kBlockEndRows](int turn) {
    return stages + turn * (block_end_stage_bytes(kChannels) / 16);
  };
  const auto turn_after = [](int turn, int more) {  // more: below kStages
    return turn + more < kStages ? turn + more : turn + more - kStages;
  };
  const auto across = static_cast<unsigned>(shape.channels / kChannels);
  const std::int64_t first_pixel = std::int64_t{blockIdx.x / across} * kBlockEndRows;
  const int first_channel = static_cast<int>(blockIdx.x % across) * kChannels;
  const int rows = static_cast<int>(min(std::int64_t{kBlockEndRows}, shape.pixels - first_pixel));
  // The tile's first element in tensors shaped like out. Computing it at each use saves registers in the
  // loop.
  const auto first = [&] { return first_pixel * shape.channels + first_channel; };

  const bool has_pixels = Tile::first_row() < rows;
  const int second_steps = has_second_product(kEnd) ? shape.second_outputs / kBlockEndStep : 0;
  const int steps = second_steps + shape.outputs / kBlockEndStep;
  // The factors of each step, then what is added, then the norm's input: a stage each.
  const auto hold = [&](int item, uint4* into) {
    const auto hold_tile = [&](const T* from) {
      hold_rows<kRowChunks, kBlockEndRows>(from + first(), shape.channels, rows, into);
    };
    const auto hold_factors = [&](const T* left, const T* weight, int outputs, int output) {
      hold_rows<kFactorChunks, kBlockEndRows>(left + first_pixel * outputs + output, outputs, rows, into);
      hold_rows<kRowChunks, kBlockEndStep>(weight + output * shape.channels + first_channel, shape.channels,
                                           kBlockEndStep, into + kLeftChunks);
    };
    if (item < second_steps)
      hold_factors(tensors.second_left, tensors.second_weight, shape.second_outputs, item * kBlockEndStep);
    else if (item < steps)
      hold_factors(tensors.left, tensors.weight, shape.outputs, (item - second_steps) * kBlockEndStep);
    else if (kEnd == End::gradient && kSums < 3 && item == steps && shape.added_grid.shift > 0)
      hold_grid<kRowChunks, kBlockEndRows>(tensors.added + first_channel, shape.added_grid, first_pixel,
                                           shape.channels, rows, into);
    else if (item < steps + kAdds + (kSums > 1))
      hold_tile(kAdds && item == steps ? tensors.added : tensors.norm_in);
  };
  if constexpr (kEnd != End::gradient)
    hold_line<kEnd, Tile>(tensors, shape.channels, first_channel, line);
  else if (threadIdx.x < static_cast<unsigned>(rows))
    gpu::copy_to_shared(
        bits + threadIdx.x,
        tensors.mask + (first() + static_cast<std::int64_t>(threadIdx.x) * shape.channels) / 8, true);
#pragma unroll
  for (int item = 0; item < kStages; ++item) {
    hold(item, stage(item));
    gpu::end_copy_group();
  }

  WarpSums<Tile> sums = {};
  int turn = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step, turn = turn_after(turn, 1)) {
    if (step == 0)
      gpu::wait_for_copy_groups<kStages - 1>();
    else
      gpu::wait_for_copy_groups<kStages - 2>();
    __syncthreads();
    if (step > 0) {  // the stage of the step before is free
      hold(step + kStages - 1, stage(turn_after(turn, kStages - 1)));
      gpu::end_copy_group();
    }
    if (leaves_mask(kEnd) && step == 0) add_shift<Tile>(sums, 0, line);
    if (kEnd == End::through && step == second_steps) add_shift<Tile>(sums, line[kPowerAt], line);
    if (has_pixels) multiply_step<T, Tile>(stage(turn), stage(turn) + kLeftChunks, sums);
  }
  OwnPixels<T, Tile> own_shortcut_in;
  if constexpr (kSums > 2)
    load_own<T, Tile>(tensors.shortcut_in + first(), shape.channels, rows, own_shortcut_in);
  gpu::wait_for_copy_groups<0>();
  __syncthreads();
  uint4* const held = stage(kAdds ? turn : turn_after(turn, 1));
  put_sums<T, kEnd, Tile>(sums, tensors.added_scale_shift ? line + kChannels : nullptr, held);
  __syncwarp();
  if constexpr (kSums > 1) tensors.means.norm += first_channel;
  if constexpr (kSums > 2) tensors.means.shortcut += first_channel;
  if constexpr (kEnd == End::through && kSums > 0) tensors.scale_shift += first_channel;
  if constexpr (leaves_mask(kEnd)) tensors.made_mask += first() / 8;
  tensors.out += first();
  auto* const left_sums = reinterpret_cast<float*>(stage(turn_after(turn, kStages - 1)));
  store_masked<T, kEnd, Tile, kSums>(tensors, held, reinterpret_cast<const unsigned char*>(bits),
                                     shape.channels, rows, stage(turn_after(turn, kAdds)), own_shortcut_in,
                                     left_sums);
  if constexpr (kSums > 0) {
    __syncthreads();
    leave_sums<Tile, kSums>(
        left_sums, shape.channels,
        tensors.partials + std::int64_t{blockIdx.x / across} * kSums * shape.channels + first_channel);
  }
}

template <typename T>
EndTensors<T> tensors_of(const EndAddresses& at, const NormBackward& norm, const NormBackward& shortcut) {
  return {.left = as<T>(at.left),
          .weight = as<T>(at.weight),
          .second_left = as<T>(at.second_left),
          .second_weight = as<T>(at.second_weight),
          .added = as<T>(at.added),
          .scale_shift = at.scale_shift,
          .added_scale_shift = at.added_scale_shift,
          .shift = at.shift,
          .mask = at.mask,
          .made_mask = at.made_mask,
          .out = as<T>(at.out),
          .norm_in = as<T>(at.norm_in),
          .shortcut_in = as<T>(at.shortcut_in),
          .means = {norm.mean, shortcut.mean},
          .partials = at.partials};
}

template <typename T, End kEnd, typename Tile, int kSums>
void launch_end(const BlockEndShape& shape, const EndAddresses& at, const NormBackward& norm,
                const NormBackward& shortcut, cudaStream_t stream) {
  const EndTensors<T> tensors = tensors_of<T>(at, norm, shortcut);
  const std::int64_t tiles = block_end_rows(shape) * (shape.channels / Tile::kChannels);
  gpu::launch(block_end<T, kEnd, Tile, kSums>, dim3(blocks_for(tiles, 1)), dim3(kBlockEndThreads),
              static_cast<std::size_t>(block_end_shared_bytes(Tile::kChannels)), stream, shape, tensors);
  if constexpr (kSums > 0)
    launch_finish_norm_sums<kSums>(tensors.partials, static_cast<int>(block_end_rows(shape)), shape.pixels,
                                   shape.channels, norm, shortcut, stream);
}

using WideTile = EndTile<kBlockEndChannels>;
using NarrowTile = EndTile<kBlockEndChannels / 2>;

}  // namespace

void launch_block_end(DType dtype, const BlockEndShape& shape, const EndAddresses& tensors,
                      const NormBackward& norm, const NormBackward& shortcut, cudaStream_t stream) {
  with_half_type_of(dtype, [&]<typename T>(T) {
    const auto launch = tensors.shortcut_in ? launch_end<T, End::gradient, WideTile, 3>
                        : tensors.norm_in   ? launch_end<T, End::gradient, WideTile, 2>
                        : norm.d_bias       ? launch_end<T, End::gradient, WideTile, 1>
                                            : launch_end<T, End::gradient, WideTile, 0>;
    launch(shape, tensors, norm, shortcut, stream);
  });
}

void launch_block_end_forward(DType dtype, const BlockEndShape& shape, const EndAddresses& tensors,
                              cudaStream_t stream) {
  with_half_type_of(dtype, [&]<typename T>(T) {
    const auto launch =
        tensors.added ? launch_end<T, End::forward, WideTile, 0> : launch_end<T, End::joined, WideTile, 0>;
    launch(shape, tensors, {}, {}, stream);
  });
}

void launch_block_end_through(DType dtype, const BlockEndShape& shape, const EndAddresses& tensors,
                              const NormBackward& norm, cudaStream_t stream) {
  with_half_type_of(dtype, [&]<typename T>(T) {
    const bool is_wide = shape.channels % kBlockEndChannels == 0;
    const auto launch = tensors.norm_in ? (is_wide ? launch_end<T, End::through, WideTile, 2>
                                                   : launch_end<T, End::through, NarrowTile, 2>)
                                        : (is_wide ? launch_end<T, End::through, WideTile, 0>
                                                   : launch_end<T, End::through, NarrowTile, 0>);
    launch(shape, tensors, norm, {}, stream);
  });
}

}  // namespace plumb::cuda
