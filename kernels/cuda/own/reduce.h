// Reductions over the threads of a warp or a block in a fixed order. For .cu files only.
#pragma once

#include <gpu_runtime.h>

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

// `value` combined over the block; every thread gets the result.
template <int kThreads, typename T, typename Combine>
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

// Exclusive prefix sum of `count` over the block's threads; `total` becomes the sum over all.
template <int kThreads>
__device__ int sum_in_front(int count, int& total) {
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

}  // namespace plumb::cuda
