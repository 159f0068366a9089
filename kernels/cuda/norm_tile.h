// Shared by the kernels of a norm's passes: a thread's elements, reads of groups, reductions over threads and
// blocks. For .cu files only.
#pragma once

#include <gpu_runtime.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "kernels/cuda/elements.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/norm_partition.h"

namespace plumb::cuda {

// A group is what a thread accesses at once: 8 channels of a pixel, or pixels of a plane. So many elements,
// and so many per-channel values that go with them.
template <typename Of>
inline constexpr int kGroupElements = kHasPlanes<Of> ? kInPlane<Of> : kNormGroup;
template <typename Of>
inline constexpr int kGroupChannels = kHasPlanes<Of> ? 1 : kNormGroup;
template <typename Of>
using Group = Packed<Element<Of>, kGroupElements<Of>>;
// The channel of a group's element.
template <typename Of>
__device__ constexpr int channel_of(int element) {
  return kHasPlanes<Of> ? 0 : element;
}

// Calls use(Of{}) for the partition's tensors. Throws std::logic_error for planes that aren't f32.
template <typename Use>
void with_access(const NormPartition& partition, DType dtype, const Use& use) {
  if (partition.plane == 1) return with_type_of(dtype, use);
  if (dtype != DType::f32) throw std::logic_error("a norm's kernels for NCHW are f32");
  if (partition.group == 1) return use(Planes<1>{});
  use(Planes<4>{});
}

// Steps that a thread loads before it computes: 64 bytes per tensor in passes over one tensor, 32 with
// several, so that registers allow 3 or 4 blocks per multiprocessor; half of that where groups are 4 bytes.
template <typename Of>
inline constexpr int kGroupBytes = static_cast<int>(sizeof(Element<Of>)) * kGroupElements<Of>;
template <typename Of>
inline constexpr int kAtOnceAlone = std::min(8, 64 / kGroupBytes<Of>);
template <typename Of>
inline constexpr int kAtOnceOfSeveral = std::min(4, 32 / kGroupBytes<Of>);
inline constexpr int kBlocksAtOnce = 3;  // per multiprocessor; limits registers to 80

// A thread's elements: a group at each of `steps` places, `stride` apart. channels_left: of the tensor, from
// `channel` on; compared in its place at the end, `channel` makes norm_statistics<f32> spill on sm_80.
struct Place {
  std::int64_t first = 0, stride = 0;
  int channel = 0, channels_left = 0, steps = 0;
};

template <typename Of>
__device__ Place place_of(const NormPartition& partition, int block) {
  const std::int64_t begin = block * partition.steps_per_block;
  const std::int64_t end = min(begin + partition.steps_per_block, partition.steps);
  int row = static_cast<int>(threadIdx.y);
  Place place;
  if constexpr (kHasPlanes<Of>) {
    const std::int64_t group = blockIdx.z * partition.lanes + row % partition.lanes;
    const std::int64_t step = partition.channels * partition.plane;
    row /= partition.lanes;
    place.channel = static_cast<int>(blockIdx.x);
    place.channels_left = group * kGroupElements<Of> < partition.plane ? 1 : 0;
    place.first = (begin + row) * step + place.channel * partition.plane + group * kGroupElements<Of>;
    place.stride = partition.rows * step;
  } else {
    place.channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * kNormGroup;
    place.channels_left = partition.channels - place.channel;
    place.first = (begin + row) * partition.channels + place.channel;
    place.stride = std::int64_t{partition.rows} * partition.channels;
  }
  if (place.channels_left > 0 && begin + row < end)
    place.steps = static_cast<int>((end - begin - row + partition.rows - 1) / partition.rows);
  return place;
}

// For the second pass over a tensor: blocks and their steps in reverse, to begin with the data that the first
// pass left in the L2 cache.
template <typename Of>
__device__ Place reversed_place_of(const NormPartition& partition) {
  Place place = place_of<Of>(partition, static_cast<int>(gridDim.y - 1 - blockIdx.y));
  place.first += (place.steps - 1) * place.stride;
  place.stride = -place.stride;
  return place;
}

// visit(integral_constant n, at) for n steps, the elements at, at + stride …: n is kAtOnce, then 1 for the
// rest.
template <int kAtOnce, typename Visit>
__device__ void for_steps(const Place& place, const Visit& visit) {
  std::int64_t at = place.first;
  int left = place.steps;
  for (; left >= kAtOnce; left -= kAtOnce, at += kAtOnce * place.stride)
    visit(std::integral_constant<int, kAtOnce>{}, at);
  if constexpr (kAtOnce > 1) {
    for (; left > 0; --left, at += place.stride) visit(std::integral_constant<int, 1>{}, at);
  }
}

// Values through load_packed(). Of norm_backward_apply<f16,(Source)2> ptxas 13 keeps twice as many loads in
// flight with these than with load(), and with the branch for bf16, which no Program has (docs/gpu.md).
template <typename T, int kCount>
__device__ void load_floats(const T* from, float (&values)[kCount]) {
  const Packed<T, kCount> group = load_packed<kCount>(from);
#pragma unroll
  for (int j = 0; j < kCount; ++j) values[j] = group.at(j);
}
template <int kCount>
__device__ void load_floats(const std::byte* data, DType dtype, std::int64_t index, float (&values)[kCount]) {
  if constexpr (kCount == 1) {
    values[0] = as<float>(data)[index];
  } else if (dtype == DType::f16) {
    load_floats(as<__half>(data) + index, values);
  } else if (dtype == DType::bf16) {
    load_floats(as<__nv_bfloat16>(data) + index, values);
  } else {
    load_floats(as<float>(data) + index, values);
  }
}

// PReLU slopes of a thread's channels.
template <int kCount>
__device__ void load_slopes(const NormSlope& slope, int channel, float (&values)[kCount]) {
  if (slope.per_channel) return load(slope.data + channel, values);
#pragma unroll
  for (int j = 0; j < kCount; ++j) values[j] = slope.data[0];
}

// The partial sums of a block for a thread's channels.
template <typename Of>
__device__ float* partials_of_block(float* partials, int sums, const NormPartition& partition,
                                    const Place& place) {
  const unsigned block = kHasPlanes<Of> ? blockIdx.z * gridDim.y + blockIdx.y : blockIdx.y;
  return partials + std::int64_t{block} * sums * partition.channels + place.channel;
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

// Sum over the blocks of a channel, in a fixed order, of term(block, the partial results of `channel`); the
// threads with threadIdx.y = 0 have it. For blocks of finish_block() with a PartialSums of shared memory for
// every second thread. A thread loads several blocks' results at once: memory latency is the only cost.
template <int kSums, int kAtOnce = kSums == 2 ? 16 : 8, typename Term>
__device__ PartialSums<kSums> sum_partials(const float* partials, const NormPartition& partition, int channel,
                                           const Term& term) {
  const int last = channel < partition.channels ? partition.partial_blocks() - 1 : -1;
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
  return dim3(static_cast<unsigned>(partition.tiles), static_cast<unsigned>(partition.step_blocks),
              static_cast<unsigned>(partition.chunks));
}
// With planes all threads share a channel: one column.
inline dim3 pass_block(const NormPartition& partition) {
  const auto lanes = static_cast<unsigned>(partition.lanes), rows = static_cast<unsigned>(partition.rows);
  return partition.plane == 1 ? dim3(lanes, rows) : dim3(1, lanes * rows);
}
inline dim3 finish_grid(const NormPartition& partition) {
  return dim3(blocks_for(partition.channels, kFinishColumns));
}
template <int kSums>
inline constexpr std::size_t kFinishSharedBytes = sizeof(PartialSums<kSums>) * kFinishThreads / 2;

}  // namespace plumb::cuda
