// Adds up what blocks have left of sums. For .cu files only.
#pragma once

#include <gpu_runtime.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/cuda/blocks.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/norm_tile.h"

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

}  // namespace plumb::cuda
