// Reductions over the threads of a warp or a block in a fixed order, and what they need over blocks. For .cu
// files only.
#pragma once

#include <gpu_runtime.h>

#include <bit>
#include <cstddef>

#include "kernels/cuda/plan/blocks.h"

namespace plumb::cuda {

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
// Maximum; of a NaN and a number, the number: a NaN shows in a sum.
struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// `value` combined over the warp; every lane gets the result. All 32 lanes take part.
template <typename T, typename Combine>
__device__ T combine_warp(T value, Combine combine) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value = combine(value, __shfl_xor_sync(~0U, value, lanes));
  return value;
}

// `value` combined over the block of kThreads; every thread gets the result.
template <typename T, typename Combine>
__device__ T combine_block(T value, Combine combine) {
  constexpr int kWarps = kThreads / 32;
  __shared__ T of_warp[kWarps];
  value = combine_warp(value, combine);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < kWarps; ++warp) value = combine(value, of_warp[warp]);
  __syncthreads();  // before of_warp is written again
  return value;
}

// Exclusive prefix sum of `count` over the block of kThreads; `total` becomes the sum over all.
__device__ inline int sum_in_front(int count, int& total) {
  constexpr int kWarps = kThreads / 32;
  __shared__ int of_warp[kWarps];
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  int up_to_here = count;
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    const int before = __shfl_up_sync(~0U, up_to_here, lanes);
    if (lane >= lanes) up_to_here += before;
  }
  if (lane == 31) of_warp[warp] = up_to_here;
  __syncthreads();
  int in_front = up_to_here - count;
  total = 0;
  for (int other = 0; other < kWarps; ++other) {
    if (other < warp) in_front += of_warp[other];
    total += of_warp[other];
  }
  __syncthreads();  // before of_warp is written again
  return in_front;
}

// Shared memory of merge_rows: one of Sums for every second row, as if there were 2, 4, 8 … rows.
template <typename Sums>
std::size_t merge_bytes(dim3 block) {
  return sizeof(Sums) * block.x * (std::bit_ceil(block.y) / 2);
}

// Reduces over the threads of a block's column, row by row in a fixed tree; row 0 has the result. Sums with
// an odd number of floats spread over all 32 banks of shared memory.
template <typename Sums>
__device__ void merge_rows(Sums& own) {
  Sums* const column = gpu::dynamic_shared<Sums>() + threadIdx.x;
  const int rows = static_cast<int>(blockDim.y), row = static_cast<int>(threadIdx.y);
  int half = 1;
  while (half < rows) half *= 2;
  int lowest = half / 2;  // row of slot 0; after the first level a row's slot is the one that it has read
  for (half /= 2; half > 0; half /= 2, lowest = 0) {
    if (row >= half && row < 2 * half) column[(row - lowest) * blockDim.x] = own;
    __syncthreads();
    if (row < half && row + half < rows) own.merge(column[(row + half - lowest) * blockDim.x]);
  }
  __syncthreads();
}

// True for all threads of the last of `count` blocks to come here, which sees what the others stored before.
// Leaves the counter at zero.
__device__ inline bool is_last_block(unsigned* counter, int count) {
  __syncthreads();
  bool last = false;
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    const auto highest = static_cast<unsigned>(count - 1);
    last = gpu::increment_in_order(counter, highest) == highest;
  }
  return __syncthreads_or(last) != 0;
}

template <int kCount>
__device__ void load_from_l2(const float* from, float (&values)[kCount]) {
  if constexpr (kCount == 1) {
    values[0] = gpu::load_one_from_l2(from);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 four = gpu::load_from_l2(from + i);
      values[i] = four.x, values[i + 1] = four.y, values[i + 2] = four.z, values[i + 3] = four.w;
    }
  }
}

}  // namespace plumb::cuda
