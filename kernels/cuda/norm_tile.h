// Shared by the kernels of a norm's passes: a thread's elements, reads of groups of 8 channels, reductions
// over threads and blocks. For .cu files only.
#pragma once

#include <gpu_runtime.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/elements.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/norm_partition.h"

namespace plumb::cuda {

// 8 channels.
template <typename T>
using Group = Packed<T, kNormGroup>;

// Pixels that a thread loads before it computes: 64 bytes per tensor in passes over one tensor, 32 with
// several, so that registers allow 3 or 4 blocks per multiprocessor.
template <typename T>
inline constexpr int kAtOnceAlone = 8 / static_cast<int>(sizeof(T));
template <typename T>
inline constexpr int kAtOnceOfSeveral = 4 / static_cast<int>(sizeof(T));
inline constexpr int kBlocksAtOnce = 3;  // per multiprocessor; limits registers to 80

// A thread's elements: 8 at each of `pixels` places, `stride` apart.
struct Place {
  std::int64_t first = 0, stride = 0;
  int channel = 0, pixels = 0;
};

__device__ inline int first_channel() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * kNormGroup;
}

__device__ inline Place place_of(const NormPartition& partition, int block) {
  const std::int64_t begin = block * partition.pixels_per_block;
  const std::int64_t end = min(begin + partition.pixels_per_block, partition.pixels);
  const int row = static_cast<int>(threadIdx.y);
  Place place;
  place.channel = first_channel();
  place.first = (begin + row) * partition.channels + place.channel;
  place.stride = std::int64_t{partition.rows} * partition.channels;
  if (place.channel < partition.channels && begin + row < end)
    place.pixels = static_cast<int>((end - begin - row + partition.rows - 1) / partition.rows);
  return place;
}

// For the second pass over a tensor: blocks and their pixels in reverse, to begin with the data that the
// first pass left in the L2 cache.
__device__ inline Place reversed_place_of(const NormPartition& partition) {
  Place place = place_of(partition, static_cast<int>(gridDim.y - 1 - blockIdx.y));
  place.first += (place.pixels - 1) * place.stride;
  place.stride = -place.stride;
  return place;
}

// visit(integral_constant n, at) for n pixels, the elements at, at + stride …: n is kAtOnce, then 1 for the
// rest.
template <int kAtOnce, typename Visit>
__device__ void for_pixels(const Place& place, const Visit& visit) {
  std::int64_t at = place.first;
  int left = place.pixels;
  for (; left >= kAtOnce; left -= kAtOnce, at += kAtOnce * place.stride)
    visit(std::integral_constant<int, kAtOnce>{}, at);
  if constexpr (kAtOnce > 1) {
    for (; left > 0; --left, at += place.stride) visit(std::integral_constant<int, 1>{}, at);
  }
}

// 8 values through load_packed(). Of norm_backward_apply<f16,(Source)2> ptxas 13 keeps twice as many loads in
// flight with these than with load(), and with the branch for bf16, which no Program has (docs/gpu.md).
template <typename T>
__device__ void load_floats(const T* from, float (&values)[kNormGroup]) {
  const Group<T> group = load_packed<kNormGroup>(from);
#pragma unroll
  for (int j = 0; j < kNormGroup; ++j) values[j] = group.at(j);
}
__device__ inline void load_floats(const std::byte* data, DType dtype, std::int64_t index,
                                   float (&values)[kNormGroup]) {
  if (dtype == DType::f16)
    load_floats(as<__half>(data) + index, values);
  else if (dtype == DType::bf16)
    load_floats(as<__nv_bfloat16>(data) + index, values);
  else
    load_floats(as<float>(data) + index, values);
}

// PReLU slopes of a thread's channels.
__device__ inline void load_slopes(const NormSlope& slope, int channel, float (&values)[kNormGroup]) {
  if (slope.per_channel) return load(slope.data + channel, values);
#pragma unroll
  for (int j = 0; j < kNormGroup; ++j) values[j] = slope.data[0];
}

// Reduces over the threads of a block's column, row by row in a fixed tree; row 0 has the result. Shared
// memory: one Sum for every second thread. A Sum with an odd number of floats spreads over all 32 banks.
template <typename Sum>
__device__ void merge_rows(Sum& own) {
  Sum* other = gpu::dynamic_shared<Sum>();
  const int rows = static_cast<int>(blockDim.y), row = static_cast<int>(threadIdx.y);
  int half = 1;
  while (half < rows) half *= 2;
  for (half /= 2; half > 0; half /= 2) {
    if (row >= half && row < 2 * half) other[(row - half) * blockDim.x + threadIdx.x] = own;
    __syncthreads();
    if (row < half && row + half < rows) own.merge(other[row * blockDim.x + threadIdx.x]);
    __syncthreads();
  }
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

// A thread's sums for its 8 channels over `count` pixels. An odd number of floats: spreads over all banks of
// shared memory.
template <int kCount>
struct NormSums {
  static constexpr int kSums = kCount;
  float of[kCount][kNormGroup] = {};
  float count = 0;
};

__device__ inline void load_from_l2(const float* from, float (&values)[kNormGroup]) {
#pragma unroll
  for (int i = 0; i < kNormGroup; i += 4) {
    const float4 four = gpu::load_from_l2(from + i);
    values[i] = four.x, values[i + 1] = four.y, values[i + 2] = four.z, values[i + 3] = four.w;
  }
}

// `own` combined over the blocks with the same tile, in the same order whichever ends first: the last of
// kNormFanIn neighbours combines theirs, the last block to have done so combines those. That block returns
// true and has the total in row 0. Reads 8 bytes (12 with a slope) per channel and block from the L2 cache.
template <typename Sums>
__device__ bool combine_blocks(Sums& own, const NormPartition& partition, const NormScratch& scratch) {
  const int row = static_cast<int>(threadIdx.y);
  const int channel = first_channel();
  const bool is_channel = channel < partition.channels;
  unsigned* counters = scratch.counters + static_cast<int>(blockIdx.x) * norm_counters_per_tile(partition);
  int count = partition.pixel_blocks, index = static_cast<int>(blockIdx.y);  // of this level's sums
  for (int blocks_each = 1; count > 1; blocks_each *= kNormFanIn, index /= kNormFanIn) {
    const std::int64_t pixels_each = blocks_each * partition.pixels_per_block;
    const auto sums_at = [&](int i, int k) {
      const std::int64_t slot = std::int64_t{i} * blocks_each * Sums::kSums + k;
      return scratch.partials + slot * partition.channels + channel;
    };
    if (row == 0 && is_channel) {
#pragma unroll
      for (int k = 0; k < Sums::kSums; ++k) store(sums_at(index, k), own.of[k]);
    }
    const int group = index / kNormFanIn, first = group * kNormFanIn, end = min(first + kNormFanIn, count);
    if (!is_last_block(counters + group, end - first)) return false;
    own = {};
    for (int i = first + row; i < end && is_channel; i += partition.rows) {
      Sums other;
#pragma unroll
      for (int k = 0; k < Sums::kSums; ++k) load_from_l2(sums_at(i, k), other.of[k]);
      other.count = static_cast<float>(min(pixels_each, partition.pixels - i * pixels_each));
      own.merge(other);
    }
    merge_rows(own);
    count = static_cast<int>(divide_up(count, kNormFanIn));
    counters += count;
  }
  return true;
}

// Hands row 0's sums to the block's first threads, one channel each. Returns the thread's channel, or -1.
template <typename Sums>
__device__ int spread_channels(const Sums& own, const NormPartition& partition, float (&sums)[Sums::kSums]) {
  float* const held = gpu::dynamic_shared<float>();
  const int width = partition.lanes * kNormGroup;
  if (threadIdx.y == 0) {
#pragma unroll
    for (int i = 0; i < Sums::kSums; ++i)
      store(held + i * width + static_cast<int>(threadIdx.x) * kNormGroup, own.of[i]);
  }
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int channel = static_cast<int>(blockIdx.x) * width + thread;
  if (thread >= width || channel >= partition.channels) return -1;
#pragma unroll
  for (int i = 0; i < Sums::kSums; ++i) sums[i] = held[i * width + thread];
  return channel;
}

inline dim3 pass_grid(const NormPartition& partition) {
  return dim3(static_cast<unsigned>(partition.tiles), static_cast<unsigned>(partition.pixel_blocks));
}
inline dim3 pass_block(const NormPartition& partition) {
  return dim3(static_cast<unsigned>(partition.lanes), static_cast<unsigned>(partition.rows));
}
// Of a block that merges Sums.
template <typename Sums>
inline constexpr std::size_t kMergeBytes = sizeof(Sums) * kNormThreads / 2;

}  // namespace plumb::cuda
