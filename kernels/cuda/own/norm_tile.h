// Shared by the kernels of a norm's passes: a thread's elements, reads of groups, reductions over blocks, and
// what the sums become. For .cu files only.
#pragma once

#include <gpu_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/norm.h"
#include "kernels/cuda/own/reduce.h"
#include "kernels/cuda/plan/norm_partition.h"

namespace plumb::cuda {

// What a thread accesses at once: 8 channels of a pixel.
template <typename T>
using Group = Packed<T, kNormGroup>;

// Pixels that a thread loads before it computes: 64 bytes per tensor in passes over one tensor, 32 with
// several, so that registers allow 3 or 4 blocks per multiprocessor.
template <typename T>
inline constexpr int kAtOnceAlone = 64 / (kNormGroup * static_cast<int>(sizeof(T)));
template <typename T>
inline constexpr int kAtOnceOfSeveral = kAtOnceAlone<T> / 2;
inline constexpr int kBlocksAtOnce = 3;  // per multiprocessor; limits registers to 80

// A thread's elements: a group at each of `steps` places, `stride` apart.
struct Place {
  std::int64_t first = 0, stride = 0;
  int channel = 0, steps = 0;
};

__device__ inline int first_channel(const uint3& block) {
  return static_cast<int>(block.x * blockDim.x + threadIdx.x) * kNormGroup;
}

__device__ inline Place place_of(const NormPartition& partition, const uint3& block) {
  const std::int64_t begin = block.y * partition.steps_per_block;
  const std::int64_t end = min(begin + partition.steps_per_block, partition.steps);
  const int row = static_cast<int>(threadIdx.y);
  Place place;
  place.channel = first_channel(block);
  place.first = (begin + row) * partition.channels + place.channel;
  place.stride = std::int64_t{partition.rows} * partition.channels;
  if (place.channel < partition.channels && begin + row < end)
    place.steps = static_cast<int>((end - begin - row + partition.rows - 1) / partition.rows);
  return place;
}

// For the second pass over a tensor: blocks and their steps in reverse, to begin with the data that the first
// pass left in the L2 cache. With kOwnTile a block keeps its channels, as combine_blocks() wants them.
template <bool kOwnTile>
__device__ Place reversed_place_of(const NormPartition& partition) {
  const uint3 block{kOwnTile ? blockIdx.x : gridDim.x - 1 - blockIdx.x, gridDim.y - 1 - blockIdx.y, 0};
  Place place = place_of(partition, block);
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

// Values through load_packed(). Of norm_backward_apply<f16,MaskedByLine> ptxas 13 keeps twice as many loads
// in flight with these than with load(), and with the branch for bf16, which no Program has
// (docs/how-to/new-gpu.md).
template <typename T, int kCount>
__device__ void load_floats(const T* from, float (&values)[kCount]) {
  const Packed<T, kCount> group = load_packed<kCount>(from);
#pragma unroll
  for (int j = 0; j < kCount; ++j) values[j] = group.at(j);
}
template <int kCount>
__device__ void load_floats(const std::byte* data, DType dtype, std::int64_t index, float (&values)[kCount]) {
  if (dtype == DType::f16) {
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

// A thread's sums for its channels over `count` elements. An odd number of floats: spreads over all banks of
// shared memory.
template <int kCount>
struct NormSums {
  static constexpr int kSums = kCount;
  float of[kCount][kNormGroup] = {};
  float count = 0;
  __device__ void merge(const NormSums& other) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
#pragma unroll
      for (int c = 0; c < kNormGroup; ++c) of[i][c] += other.of[i][c];
    }
  }
};
using OutputSums = NormSums<1>;  // of what a pass stores

// `own` combined over the block's rows, then over the blocks with the same tile, in the same order whichever
// ends first: the last of kNormFanIn neighbors combines theirs, the last block to have done so combines
// those. That block returns true and has the total in row 0. Reads 8 bytes (12 with a third sum) per channel
// and block from the L2 cache.
template <typename Sums>
__device__ bool combine_blocks(Sums& own, const NormPartition& partition, const NormScratch& scratch) {
  merge_rows(own);
  const int row = static_cast<int>(threadIdx.y);
  const int channel = first_channel(blockIdx);
  const bool is_channel = channel < partition.channels;
  const int blocks = partition.step_blocks;
  unsigned* counters = scratch.counters + static_cast<int>(blockIdx.x) * norm_counters_per_tile(partition);
  int count = blocks;  // of this level's sums
  int index = static_cast<int>(blockIdx.y);
  for (int blocks_each = 1; count > 1; blocks_each *= kNormFanIn, index /= kNormFanIn) {
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
    for (int i = first + row; i < end && is_channel; i += static_cast<int>(blockDim.y)) {
      Sums other;
#pragma unroll
      for (int k = 0; k < Sums::kSums; ++k) load_from_l2(sums_at(i, k), other.of[k]);
      other.count = static_cast<float>(partition.steps_before(min((i + 1) * blocks_each, blocks)) -
                                       partition.steps_before(i * blocks_each));
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
  const int width = static_cast<int>(blockDim.x) * kNormGroup;
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

__device__ inline void settle_sums(OutputSums& own, const NormPartition& partition,
                                   const NormScratch& scratch, float* into) {
  if (!combine_blocks(own, partition, scratch)) return;
  float sums[1];
  const int channel = spread_channels(own, partition, sums);
  if (channel >= 0) into[channel] = sums[0];
}

// A channel's norm: out = scale * in + shift.
struct NormLine {
  float inv_std, scale, shift;
};
__device__ inline NormLine line_of(const NormStatistics& into, int channel, float mean, float variance) {
  const float inv_std = 1 / sqrtf(variance + into.epsilon);
  const float scale = into.scale[channel] * inv_std;
  return {inv_std, scale, into.bias[channel] - mean * scale};
}

// Stores what follows from a batch's mean and biased variance over `elements`.
__device__ inline void settle(const NormStatistics& into, int channel, int channels, float mean,
                              float variance, std::int64_t elements) {
  // Read before anything is written, which might be at the same address for all the compiler knows.
  const float running_mean = into.running_mean[channel], running_variance = into.running_variance[channel];
  const auto [inv_std, scale, shift] = line_of(into, channel, mean, variance);
  // n / (n - 1) for n > 1 elements per channel (PyTorch, aten/src/ATen/native/Normalization.cpp).
  const float correction =
      elements > 1 ? static_cast<float>(elements) / static_cast<float>(elements - 1) : 1.0F;
  const float keep = 1 - into.momentum;
  into.running_mean[channel] = keep * running_mean + into.momentum * mean;
  into.running_variance[channel] = keep * running_variance + into.momentum * correction * variance;
  if (into.mean) into.mean[channel] = mean;
  into.inv_std[channel] = inv_std;
  if (into.scale_shift_dtype == DType::f16) {
    as<__half>(into.scale_shift)[channel] = from_float<__half>(scale);
    as<__half>(into.scale_shift)[channels + channel] = from_float<__half>(shift);
  } else {
    as<float>(into.scale_shift)[channel] = scale;
    as<float>(into.scale_shift)[channels + channel] = shift;
  }
}

// Stores what follows from two sums over a channel's `elements`: the gradient, and its product with (in -
// mean).
__device__ inline void settle(const NormBackward& into, int channel, int channels, float gradient,
                              float product, std::int64_t elements) {
  const auto count = static_cast<float>(elements);
  const float inv_std = into.inv_std[channel], mean = into.mean[channel];
  const float d_scale = product * inv_std;
  const float of_gradient = into.scale[channel] * inv_std;
  const float of_in = -of_gradient * inv_std * d_scale / count;
  into.d_scale[channel] = d_scale;
  into.d_bias[channel] = gradient;
  into.coefficients[channel] = of_gradient;
  into.coefficients[channels + channel] = of_in;
  into.coefficients[2 * channels + channel] = -of_gradient * gradient / count - of_in * mean;
}

// What turns gradients into d_in, for each channel of a thread.
template <int kChannels>
struct Coefficients {
  float of_gradient[kChannels], of_in[kChannels], constant[kChannels];
  __device__ void load(const float* from, std::int64_t channels, int channel) {
    load_floats(from + channel, of_gradient);
    load_floats(from + channels + channel, of_in);
    load_floats(from + 2 * channels + channel, constant);
  }
  __device__ float d_in(int channel, float gradient, float in) const {
    return of_gradient[channel] * gradient + (of_in[channel] * in + constant[channel]);
  }
};

inline dim3 pass_grid(const NormPartition& partition) {
  return dim3(static_cast<unsigned>(partition.tiles), static_cast<unsigned>(partition.step_blocks));
}
inline dim3 pass_block(const NormPartition& partition) {
  return dim3(static_cast<unsigned>(partition.lanes), static_cast<unsigned>(partition.rows));
}

}  // namespace plumb::cuda
