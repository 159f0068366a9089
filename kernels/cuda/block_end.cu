#include <algorithm>
#include <type_traits>

#include "kernels/cuda/block_end.h"
#include "kernels/cuda/block_end_tile.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/finish_sums.h"
#include "kernels/cuda/norm_coefficients.h"
#include "kernels/cuda/norm_tile.h"

namespace plumb::cuda {
namespace {

// A block has one tile of channels of every so many rows of tiles, and copies the factors of the next tile
// while it stores one. Blocks of the same pixels are neighbours, so the left factors come from memory once.
// Per element of out: reads 2 bytes of `added` and 2 * outputs / channels of the left factors, writes 2;
// reads or writes a bit of the mask; for each norm 2 more of its input, and 4 bytes for each sum of a channel
// over 128 pixels. Bound by memory up to 128 outputs; above, the factors, which each block reads from the L2
// cache, take as long.
template <typename T, End kEnd, int kChannels, int kSums>
__global__ void __launch_bounds__(kBlockEndThreads, 2)
    block_end(BlockEndShape shape, EndTiles tiles, EndTensors<T> tensors) {
  constexpr int kLeftChunks = kBlockEndRows * kFactorChunks, kRowChunks = kTileChunks<kChannels>,
                kStages = block_end_stages(kChannels);
  constexpr bool kAdds = !has_second_product(kEnd), kNorm = kSums > 1;
  uint4* const bits = gpu::dynamic_shared<uint4>();
  auto* const line = reinterpret_cast<float*>(bits);
  // The stages are taken in turn.
  const auto stage = [stages = bits + kBlockEndRows](int turn) {
    return stages + turn * kStageChunks<kChannels>;
  };
  const auto turn_after = [](int turn, int more) {  // more: below kStages
    return turn + more < kStages ? turn + more : turn + more - kStages;
  };
  const int first_channel = static_cast<int>(blockIdx.x) * kChannels;
  const auto pixel_of = [](int tile_row) { return std::int64_t{tile_row} * kBlockEndRows; };
  const auto rows_of = [&](int tile_row) {
    return static_cast<int>(min(std::int64_t{kBlockEndRows}, shape.pixels - pixel_of(tile_row)));
  };
  // Of the tile, in tensors like out. Computed where it is used, to save registers in the loop.
  const auto first_of = [&](int tile_row) { return pixel_of(tile_row) * shape.channels + first_channel; };

  // A tile has these items, a stage each: the factors of each step, what is added, the norm's input.
  // Items behind the tile's last are those of the next one.
  const auto hold = [&](int tile_row, int item, uint4* into) {
    for (; item >= tiles.steps + kAdds + kNorm; item -= tiles.steps + kAdds + kNorm)
      tile_row += static_cast<int>(gridDim.y);
    if (tile_row >= tiles.rows) return;
    const std::int64_t first_pixel = pixel_of(tile_row);
    const int rows = rows_of(tile_row);
    const auto hold_tile = [&](const T* from) {
      hold_rows<kRowChunks, kBlockEndRows>(from + first_of(tile_row), shape.channels, rows, into);
    };
    const auto hold_factors = [&](const T* left, const T* weight, int outputs, int output) {
      hold_rows<kFactorChunks, kBlockEndRows>(left + first_pixel * outputs + output, outputs, rows, into);
      hold_rows<kRowChunks, kBlockEndStep>(weight + output * shape.channels + first_channel, shape.channels,
                                           kBlockEndStep, into + kLeftChunks);
    };
    if (has_second_product(kEnd) && item < tiles.second_steps)
      hold_factors(tensors.second_left, tensors.second_weight, shape.second_outputs, item * kBlockEndStep);
    else if (item < tiles.steps)
      hold_factors(tensors.left, tensors.weight, shape.outputs, (item - tiles.second_steps) * kBlockEndStep);
    else if (kEnd == End::gradient && item == tiles.steps && shape.added_grid.shift > 0)
      hold_grid<kRowChunks, kBlockEndRows>(tensors.added + first_channel, shape.added_grid, first_pixel,
                                           shape.channels, rows, into);
    else
      hold_tile(kAdds && item == tiles.steps ? tensors.added : tensors.norm_in);
  };
  if constexpr (kEnd != End::gradient)
    hold_line<kEnd, kChannels>(tensors, shape.channels, first_channel, line);
#pragma unroll
  for (int item = 0; item < kStages - 1; ++item) {
    hold(static_cast<int>(blockIdx.y), item, stage(item));
    gpu::end_copy_group();
  }

  int turn = 0;  // the stage of the item to use
#pragma unroll 1
  for (int tile_row = static_cast<int>(blockIdx.y); tile_row < tiles.rows;
       tile_row += static_cast<int>(gridDim.y)) {
    // kStages - 1 items are under way before one is used; then the stage of the one before is free.
    const auto hold_behind = [&](int item, int own_turn) {
      hold(tile_row, item + kStages - 1, stage(turn_after(own_turn, kStages - 1)));
      gpu::end_copy_group();
    };
    const int rows = rows_of(tile_row);
    const bool has_pixels = gpu::thread_here() / 64 * 16 * kWarpTiles < rows;
    WarpSums<kChannels> sums = {};
#pragma unroll 1
    for (int step = 0; step < tiles.steps; ++step, turn = turn_after(turn, 1)) {
      gpu::wait_for_copy_groups<kStages - 2>();
      __syncthreads();
      if (kEnd == End::gradient && step == 0) {
        const int thread = gpu::thread_here();
        if (thread < rows)
          gpu::copy_to_shared(bits + thread,
                              tensors.mask + (first_of(tile_row) + std::int64_t{thread} * shape.channels) / 8,
                              true);
        gpu::end_copy_group();
      }
      hold_behind(step, turn);
      if (kEnd == End::through && step == tiles.second_steps) multiply_sums<kChannels>(line[kPowerAt], sums);
      if (has_pixels) multiply_step<T, kChannels>(stage(turn), stage(turn) + kLeftChunks, sums);
    }
    if constexpr (kEnd != End::gradient) add_shift<kChannels>(line, sums);
    if constexpr (kAdds && kNorm)
      gpu::wait_for_copy_groups<kStages - 3>();
    else if constexpr (kAdds || kNorm)
      gpu::wait_for_copy_groups<kStages - 2>();
    __syncthreads();
    // What is added becomes the tile; else the tile lies where the last factors were.
    if constexpr (kAdds) hold_behind(tiles.steps, turn);
    uint4* const held = stage(kAdds ? turn : turn_after(turn, kStages - 1));
    put_sums<T, kEnd, kChannels>(sums, tensors.added_scale_shift ? line + kChannels : nullptr, held);
    __syncwarp();
    ThreadSums<kSums> own_sums = {};
    store_masked<T, kEnd, kChannels, kSums>(tensors, first_of(tile_row), first_channel, held,
                                            reinterpret_cast<const unsigned char*>(bits), shape.channels,
                                            rows, stage(turn_after(turn, kAdds)), own_sums);
    if constexpr (kSums > 0) {
      __syncthreads();
      leave_sums<kChannels, kSums>(
          own_sums, reinterpret_cast<float*>(held), shape.channels,
          tensors.partials + std::int64_t{tile_row} * kSums * shape.channels + first_channel);
    }
    if constexpr (kNorm) {
      __syncthreads();
      hold_behind(tiles.steps + kAdds, turn_after(turn, kAdds));
    }
    turn = turn_after(turn, kAdds + kNorm);
  }
}

// A block finishes the sums of 8 channels, in a fixed order. Reads 4 bytes per sum, channel and row of tiles
// from the L2 cache: bound by its latency.
template <int kSums>
__global__ void __launch_bounds__(kFinishedChannels* kFinishingRows, 1)
    finish_norm_sums(const float* partials, int rows, std::int64_t pixels, int channels, NormBackward norm,
                     NormBackward shortcut) {
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
  if constexpr (kSums == 1)
    norm.d_bias[channel] = sums.of[0];
  else
    NormGradientSums{sums.of[0], sums.of[1]}.settle(norm, pixels, channels, channel);
  if constexpr (kSums > 2)
    NormGradientSums{sums.of[0], sums.of[2]}.settle(shortcut, pixels, channels, channel);
}

template <typename T, End kEnd, int kChannels, int kSums>
void launch_end(const BlockEndShape& shape, const EndTensors<T>& tensors, const NormBackward& norm,
                const NormBackward& shortcut, cudaStream_t stream) {
  const auto kernel = block_end<T, kEnd, kChannels, kSums>;
  constexpr auto kBytes = static_cast<std::size_t>(block_end_shared_bytes(kChannels));
  const int across = shape.channels / kChannels, second_steps = shape.second_outputs / kBlockEndStep;
  const EndTiles tiles{.rows = static_cast<int>(block_end_rows(shape)),
                       .steps = second_steps + shape.outputs / kBlockEndStep,
                       .second_steps = second_steps};
  const int rows_at_once = std::max(1, gpu::blocks_at_once(kernel, kBlockEndThreads, kBytes) / across);
  gpu::launch(kernel,
              dim3(static_cast<unsigned>(across), static_cast<unsigned>(std::min(rows_at_once, tiles.rows))),
              dim3(kBlockEndThreads), kBytes, stream, shape, tiles, tensors);
  if constexpr (kSums > 0) {
    const dim3 block(kFinishedChannels, kFinishingRows);
    gpu::launch(finish_norm_sums<kSums>, dim3(blocks_for(shape.channels, kFinishedChannels)), block,
                merge_bytes<FinishedSums<kSums>>(block), stream, tensors.partials,
                static_cast<int>(block_end_rows(shape)), shape.pixels, shape.channels, norm, shortcut);
  }
}

}  // namespace

void launch_block_end(DType dtype, const BlockEndShape& shape, const BlockEndOperands& operands,
                      cudaStream_t stream) {
  with_half_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    const EndTensors<T> tensors{.left = as<T>(operands.d_out),
                                .weight = as<T>(operands.weight),
                                .added = as<T>(operands.added),
                                .mask = as<unsigned char>(operands.mask),
                                .out = as<T>(operands.d_in),
                                .norm_in = as<T>(operands.norm_in),
                                .shortcut_in = as<T>(operands.shortcut_in),
                                .means = {operands.norm.mean, operands.shortcut.mean},
                                .partials = operands.partials};
    const auto launch = [&]<int kSums>(std::integral_constant<int, kSums>) {
      launch_end<T, End::gradient, kBlockEndChannels, kSums>(shape, tensors, operands.norm, operands.shortcut,
                                                             stream);
    };
    if (operands.shortcut_in)
      launch(std::integral_constant<int, 3>{});
    else if (operands.norm_in)
      launch(std::integral_constant<int, 2>{});
    else if (operands.norm.d_bias)
      launch(std::integral_constant<int, 1>{});
    else
      launch(std::integral_constant<int, 0>{});
  });
}

void launch_block_end_forward(DType dtype, const BlockEndShape& shape, const BlockEndOutput& operands,
                              cudaStream_t stream) {
  with_half_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    const EndTensors<T> tensors{.left = as<T>(operands.in),
                                .weight = as<T>(operands.weight),
                                .second_left = as<T>(operands.shortcut_in),
                                .second_weight = as<T>(operands.shortcut_weight),
                                .added = as<T>(operands.residual),
                                .scale_shift = operands.scale_shift,
                                .added_scale_shift = operands.residual_scale_shift,
                                .made_mask = operands.mask,
                                .out = as<T>(operands.out)};
    if (operands.residual)
      launch_end<T, End::forward, kBlockEndChannels, 0>(shape, tensors, {}, {}, stream);
    else
      launch_end<T, End::joined, kBlockEndChannels, 0>(shape, tensors, {}, {}, stream);
  });
}

void launch_block_end_through(DType dtype, const BlockEndShape& shape, const BlockEndInputGradient& operands,
                              cudaStream_t stream) {
  with_half_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    const EndTensors<T> tensors{.left = as<T>(operands.d_out),
                                .weight = as<T>(operands.weight),
                                .second_left = as<T>(operands.in),
                                .second_weight = as<T>(operands.factors),
                                .scale_shift = operands.scale_shift,
                                .shift = operands.shift,
                                .out = as<T>(operands.d_in),
                                .norm_in = as<T>(operands.norm_in),
                                .means = {operands.norm.mean, nullptr},
                                .partials = operands.partials};
    const auto launch = [&]<int kSums>(std::integral_constant<int, kSums>) {
      if (shape.channels % kBlockEndChannels == 0)
        launch_end<T, End::through, kBlockEndChannels, kSums>(shape, tensors, operands.norm, {}, stream);
      else
        launch_end<T, End::through, kBlockEndChannels / 2, kSums>(shape, tensors, operands.norm, {}, stream);
    };
    if (operands.norm_in)
      launch(std::integral_constant<int, 2>{});
    else
      launch(std::integral_constant<int, 0>{});
  });
}

}  // namespace plumb::cuda
