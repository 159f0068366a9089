// Adds up what blocks have left of sums. For .cu files only.
#pragma once

#include <gpu_runtime.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/norm_tile.h"
#include "kernels/cuda/plan/blocks.h"

namespace plumb::cuda {

inline constexpr int kFinishColumns = 32;  // sums of a finishing block
inline constexpr int kMaxFinishRows = 32;  // threads per sum
inline constexpr int kFinishThreads = kFinishColumns * kMaxFinishRows;

template <int kSums>
struct FinishedSums {
  float of[kSums] = {};
  __device__ void merge(const FinishedSums& other) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) of[i] += other.of[i];
  }
};

// A block finishes 32 sums, each in a fixed order. Reads 4 bytes per sum and block from the L2 cache, writes
// one element per sum: bound by launch latency.
template <typename T>
__global__ void __launch_bounds__(kFinishThreads, 1)
    finish_sums(const float* partials, int blocks, std::int64_t count, T* sums) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kFinishColumns + threadIdx.x;
  FinishedSums<1> sum;
  if (at < count) {
#pragma unroll 8
    for (int block = static_cast<int>(threadIdx.y); block < blocks; block += static_cast<int>(blockDim.y))
      sum.of[0] += partials[block * count + at];
  }
  merge_rows(sum);
  if (threadIdx.y == 0 && at < count) sums[at] = from_float<T>(sum.of[0]);
}

// sums[count] = over the blocks of partials [blocks, count].
template <typename T>
void launch_finish_sums(const float* partials, int blocks, std::int64_t count, T* sums, cudaStream_t stream) {
  const int rows = std::clamp(blocks, 1, kMaxFinishRows);
  const dim3 columns(kFinishColumns, std::bit_ceil(static_cast<unsigned>(rows)));
  gpu::launch(finish_sums<T>, dim3(blocks_for(count, kFinishColumns)), columns,
              merge_bytes<FinishedSums<1>>(columns), stream, partials, blocks, count, sums);
}

inline constexpr int kFinishedChannels = 8, kFinishingRows = 128;

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
    settle(norm, channel, channels, sums.of[0], sums.of[1], pixels);
  if constexpr (kSums > 2) settle(shortcut, channel, channels, sums.of[0], sums.of[2], pixels);
}

// Makes what a norm's backward needs of the sums over the rows of partials [rows, kSums, channels]: of a
// gradient, of its product with (in - mean) and, with 3, with (shortcut_in - shortcut's mean); with 1 its
// d_bias only.
template <int kSums>
void launch_finish_norm_sums(const float* partials, int rows, std::int64_t pixels, int channels,
                             const NormBackward& norm, const NormBackward& shortcut, cudaStream_t stream) {
  const dim3 block(kFinishedChannels, kFinishingRows);
  gpu::launch(finish_norm_sums<kSums>, dim3(blocks_for(channels, kFinishedChannels)), block,
              merge_bytes<FinishedSums<kSums>>(block), stream, partials, rows, pixels, channels, norm,
              shortcut);
}

}  // namespace plumb::cuda
