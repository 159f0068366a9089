// Shared by the kernels of a norm's passes: a thread's elements, reads of groups of 8 channels, reductions
// over threads and blocks. For .cu files only.
#pragma once

#include <gpu_runtime.h>

#include <algorithm>
#include <bit>
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

// A thread's elements: 8 at each of `pixels` places, `stride` apart. channels_left: of the tensor, from
// `channel` on; compared in its place at the end, `channel` makes norm_statistics<f32> spill on sm_80.
struct Place {
  std::int64_t first = 0, stride = 0;
  int channel = 0, channels_left = 0, pixels = 0;
};

__device__ inline Place place_of(const NormPartition& partition, int block) {
  const std::int64_t begin = block * partition.pixels_per_block;
  const std::int64_t end = min(begin + partition.pixels_per_block, partition.pixels);
  const int row = static_cast<int>(threadIdx.y);
  Place place;
  place.channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * kNormGroup;
  place.channels_left = partition.channels - place.channel;
  place.first = (begin + row) * partition.channels + place.channel;
  place.stride = std::int64_t{partition.rows} * partition.channels;
  if (place.channels_left > 0 && begin + row < end)
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

inline constexpr int kFinishColumns = 32;  // channels of a finishing block
inline constexpr int kMaxFinishRows = 32;  // threads per channel's partial sums
inline constexpr int kFinishThreads = kFinishColumns * kMaxFinishRows;
// A power of two, at most the number of partial sums.
inline dim3 finish_block(int partial_sums) {
  const auto rows = std::bit_ceil(static_cast<unsigned>(std::clamp(partial_sums, 1, kMaxFinishRows)));
  return dim3(kFinishColumns, rows);
}

template <int kSums>
struct PartialSums {
  float at[kSums] = {};
};

// Sum over the blocks of pixels, in a fixed order, of term(block, the partial results of `channel`); the
// threads with threadIdx.y = 0 have it. For blocks of finish_block() with a PartialSums of shared memory for
// every second thread. A thread loads several blocks' results at once: memory latency is the only cost.
template <int kSums, typename Term>
__device__ PartialSums<kSums> sum_partials(const float* partials, const NormPartition& partition, int channel,
                                           const Term& term) {
  constexpr int kAtOnce = kSums == 2 ? 16 : 8;
  const int last = channel < partition.channels ? partition.pixel_blocks - 1 : -1;
  PartialSums<kSums>* other = gpu::dynamic_shared<PartialSums<kSums>>();
  PartialSums<kSums> sum;
  const int rows = static_cast<int>(blockDim.y);
  for (int first = static_cast<int>(threadIdx.y); first <= last; first += kAtOnce * rows) {
    PartialSums<kSums> held[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int block = min(first + u * rows, last);
      const float* const from = partials + std::int64_t{block} * kSums * partition.channels + channel;
#pragma unroll
      for (int i = 0; i < kSums; ++i) held[u].at[i] = from[std::int64_t{i} * partition.channels];
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int block = first + u * rows;
      const PartialSums<kSums> more = term(min(block, last), held[u]);
#pragma unroll
      for (int i = 0; i < kSums; ++i) sum.at[i] += block <= last ? more.at[i] : 0;
    }
  }
  const int row = static_cast<int>(threadIdx.y);
  for (int half = rows / 2; half > 0; half /= 2) {
    if (row >= half && row < 2 * half) other[(row - half) * kFinishColumns + threadIdx.x] = sum;
    __syncthreads();
    if (row < half) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) sum.at[i] += other[row * kFinishColumns + threadIdx.x].at[i];
    }
    __syncthreads();
  }
  return sum;
}

inline dim3 pass_grid(const NormPartition& partition) {
  return dim3(static_cast<unsigned>(partition.tiles), static_cast<unsigned>(partition.pixel_blocks));
}
inline dim3 pass_block(const NormPartition& partition) {
  return dim3(static_cast<unsigned>(partition.lanes), static_cast<unsigned>(partition.rows));
}
inline dim3 finish_grid(const NormPartition& partition) {
  return dim3(blocks_for(partition.channels, kFinishColumns));
}
template <int kSums>
inline constexpr std::size_t kFinishSharedBytes = sizeof(PartialSums<kSums>) * kFinishThreads / 2;

}  // namespace plumb::cuda
