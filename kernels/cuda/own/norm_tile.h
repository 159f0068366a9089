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

// A thread's elements: a group at each of `steps` places, `stride` apart.
struct Place {
  std::int64_t first = 0, stride = 0;
  int channel = 0, steps = 0;
};

template <typename Of>
__device__ int first_channel(const uint3& block) {
  return kHasPlanes<Of> ? static_cast<int>(block.x)
                        : static_cast<int>(block.x * blockDim.x + threadIdx.x) * kNormGroup;
}

template <typename Of>
__device__ Place place_of(const NormPartition& partition, const uint3& block) {
  const std::int64_t begin = block.y * partition.steps_per_block;
  const std::int64_t end = min(begin + partition.steps_per_block, partition.steps);
  const int thread = static_cast<int>(threadIdx.y);
  const int row = kHasPlanes<Of> ? thread / partition.lanes : thread;
  Place place;
  place.channel = first_channel<Of>(block);
  place.first = (begin + row) * partition.channels + place.channel;
  place.stride = std::int64_t{partition.rows} * partition.channels;
  bool is_inside = place.channel < partition.channels;
  if constexpr (kHasPlanes<Of>) {
    const std::int64_t in_plane =
        (block.z * partition.lanes + thread % partition.lanes) * std::int64_t{kGroupElements<Of>};
    place.first = place.first * partition.plane + in_plane;
    place.stride *= partition.plane;
    is_inside = in_plane < partition.plane;
  }
  if (is_inside && begin + row < end)
    place.steps = static_cast<int>((end - begin - row + partition.rows - 1) / partition.rows);
  return place;
}

// For the second pass over a tensor: blocks and their steps in reverse, to begin with the data that the first
// pass left in the L2 cache. With kOwnTile a block keeps its channels, as combine_blocks() wants them.
template <typename Of, bool kOwnTile = false>
__device__ Place reversed_place_of(const NormPartition& partition) {
  const uint3 block{kOwnTile ? blockIdx.x : gridDim.x - 1 - blockIdx.x, gridDim.y - 1 - blockIdx.y,
                    gridDim.z - 1 - blockIdx.z};
  Place place = place_of<Of>(partition, block);
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

// A thread's sums for its channels over `count` elements. With 8 channels an odd number of floats: spreads
// over all banks of shared memory.
template <typename Tensors, int kCount>
struct NormSums {
  using Of = Tensors;
  static constexpr int kSums = kCount;
  float of[kCount][kGroupChannels<Of>] = {};
  float count = 0;
  __device__ void merge(const NormSums& other) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
#pragma unroll
      for (int c = 0; c < kGroupChannels<Of>; ++c) of[i][c] += other.of[i][c];
    }
  }
};
template <typename Of>
using OutputSums = NormSums<Of, 1>;  // sums of what a pass stores

// `own` combined over the block's rows, then over the blocks with the same tile, in the same order whichever
// ends first: the last of kNormFanIn neighbors combines theirs, the last block to have done so combines
// those. That block returns true and has the total in row 0. Reads 8 bytes (12 with a third sum) per channel
// and block from the L2 cache.
template <typename Sums>
__device__ bool combine_blocks(Sums& own, const NormPartition& partition, const NormScratch& scratch) {
  merge_rows(own);
  const int row = static_cast<int>(threadIdx.y);
  const int channel = first_channel<typename Sums::Of>(blockIdx);
  const bool is_channel = channel < partition.channels;
  constexpr bool kPlanes = kHasPlanes<typename Sums::Of>;  // else there is one chunk
  const int blocks = kPlanes ? partition.partial_blocks() : partition.step_blocks;
  unsigned* counters = scratch.counters + static_cast<int>(blockIdx.x) * norm_counters_per_tile(partition);
  int count = blocks;  // of this level's sums
  int index = static_cast<int>(kPlanes ? blockIdx.z * gridDim.y + blockIdx.y : blockIdx.y);
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
      other.count = static_cast<float>(partition.elements_before(min((i + 1) * blocks_each, blocks)) -
                                       partition.elements_before(i * blocks_each));
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
  constexpr int kChannels = kGroupChannels<typename Sums::Of>;
  float* const held = gpu::dynamic_shared<float>();
  const int width = static_cast<int>(blockDim.x) * kChannels;
  if (threadIdx.y == 0) {
#pragma unroll
    for (int i = 0; i < Sums::kSums; ++i)
      store(held + i * width + static_cast<int>(threadIdx.x) * kChannels, own.of[i]);
  }
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int channel = static_cast<int>(blockIdx.x) * width + thread;
  if (thread >= width || channel >= partition.channels) return -1;
#pragma unroll
  for (int i = 0; i < Sums::kSums; ++i) sums[i] = held[i * width + thread];
  return channel;
}

template <typename Of>
__device__ void settle_sums(OutputSums<Of>& own, const NormPartition& partition, const NormScratch& scratch,
                            float* into) {
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
  return dim3(static_cast<unsigned>(partition.tiles), static_cast<unsigned>(partition.step_blocks),
              static_cast<unsigned>(partition.chunks));
}
// With planes all threads share a channel: one column.
inline dim3 pass_block(const NormPartition& partition) {
  const auto lanes = static_cast<unsigned>(partition.lanes), rows = static_cast<unsigned>(partition.rows);
  return partition.plane == 1 ? dim3(lanes, rows) : dim3(1, lanes * rows);
}

}  // namespace plumb::cuda
