#include <stdexcept>

#include "kernels/cuda/norm.h"
#include "kernels/cuda/norm_tile.h"

namespace plumb::cuda {
namespace {

// Mean of `count` elements per channel, and the sum of their squared differences from it.
template <int kChannels>
struct Moments {
  float count = 0;
  float mean[kChannels] = {};
  float squares[kChannels] = {};

  // Source: T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing
  // sample variances", 1979.
  __device__ void merge(const Moments& other) {
    const float total = count + other.count;
    const float share = total > 0 ? other.count / total : 0;
#pragma unroll
    for (int j = 0; j < kChannels; ++j) {
      const float difference = other.mean[j] - mean[j];
      mean[j] += difference * share;
      squares[j] += other.squares[j] + difference * difference * (count * share);
    }
    count = total;
  }
};

// A block reduces its channels over its part of the tensor. Each thread sums differences from its first
// element, so that a large mean costs a small variance no precision. Reads each element once: 2 bytes in a
// half type, 4 in f32; bound by memory (3 additions or multiply-adds per element).
template <typename Of>
__global__ void __launch_bounds__(kNormThreads, 4)
    norm_statistics(const std::byte* in, float* partials, NormPartition partition) {
  const Place place = place_of<Of>(partition, static_cast<int>(blockIdx.y));
  const auto* const elements = as<Element<Of>>(in);
  float shift[kGroupChannels<Of>] = {}, sum[kGroupChannels<Of>] = {};
  Moments<kGroupChannels<Of>> own;
  if (place.steps > 0) load(elements + place.first, shift);
  for_steps<kAtOnceAlone<Of>>(place, [&](auto at_once, std::int64_t at) {
    Group<Of> x[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u)
      x[u] = load_packed<kGroupElements<Of>>(elements + at + u * place.stride);
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
#pragma unroll
      for (int j = 0; j < kGroupElements<Of>; ++j) {
        const int c = channel_of<Of>(j);
        const float difference = x[u].at(j) - shift[c];
        sum[c] += difference;
        own.squares[c] += difference * difference;
      }
    }
  });
  if (place.steps > 0) {
    own.count = static_cast<float>(place.steps * (kGroupElements<Of> / kGroupChannels<Of>));
#pragma unroll
    for (int c = 0; c < kGroupChannels<Of>; ++c) {
      const float offset = sum[c] / own.count;
      own.mean[c] = shift[c] + offset;
      own.squares[c] = fmaxf(own.squares[c] - offset * sum[c], 0);
    }
  }
  merge_rows(own);
  if (threadIdx.y != 0 || place.channels_left <= 0) return;
  float* const means = partials_of_block<Of>(partials, kNormSums, partition, place);
  store(means, own.mean);
  store(means + partition.channels, own.squares);
}

__device__ void settle(const NormStatistics& into, int channel, int channels, float mean, float variance,
                       std::int64_t pixels) {
  const float inv_std = 1 / sqrtf(variance + into.epsilon);
  const float scale = into.scale[channel] * inv_std;
  const float shift = into.bias[channel] - mean * scale;
  // n / (n - 1) for n > 1 elements per channel (PyTorch, aten/src/ATen/native/Normalization.cpp).
  const float correction = pixels > 1 ? static_cast<float>(pixels) / static_cast<float>(pixels - 1) : 1.0F;
  const float keep = 1 - into.momentum;
  into.mean[channel] = mean;
  into.inv_std[channel] = inv_std;
  into.running_mean[channel] = keep * into.running_mean[channel] + into.momentum * mean;
  into.running_variance[channel] =
      keep * into.running_variance[channel] + into.momentum * correction * variance;
  if (into.scale_shift_dtype == DType::f16) {
    as<__half>(into.scale_shift)[channel] = from_float<__half>(scale);
    as<__half>(into.scale_shift)[channels + channel] = from_float<__half>(shift);
  } else {
    as<float>(into.scale_shift)[channel] = scale;
    as<float>(into.scale_shift)[channels + channel] = shift;
  }
}

// A block combines the partial results of 32 channels, as differences from the first block's mean, and
// computes the channels' results. Reads 8 bytes per channel and block of pixels from the L2 cache, at most 8
// KiB per channel: bound by launch latency.
template <bool kPlanes>
__global__ void __launch_bounds__(kFinishThreads, 1)
    norm_finish(const float* partials, NormPartition partition, NormStatistics into) {
  const int channel = static_cast<int>(blockIdx.x * kFinishColumns + threadIdx.x);
  const bool there = channel < partition.channels;
  const float shift = there ? partials[channel] : 0;
  using Moment = PartialSums<kNormSums>;
  const Moment sum = sum_partials < kNormSums,
               kPlanes
                   ? 8
                   : 16 > (partials, partition, channel, [&](int block, Moment moment) {
                       const auto count = static_cast<float>(kPlanes ? partition.elements_of(block)
                                                                     : partition.steps_of(block));
                       const float difference = moment.at[0] - shift;
                       return Moment{{count * difference, moment.at[1] + count * difference * difference}};
                     });
  if (threadIdx.y != 0 || !there) return;
  const auto count = static_cast<float>(partition.elements_per_channel());
  const float offset = sum.at[0] / count;
  settle(into, channel, partition.channels, shift + offset, fmaxf(sum.at[1] / count - offset * offset, 0),
         partition.elements_per_channel());
}

// One channel per thread. The difference of two large sums is taken in f64. Tens of bytes per channel: bound
// by launch latency.
__global__ void norm_finalize(const float* sums, std::int64_t pixels, int channels, NormStatistics into) {
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (channel >= channels) return;
  const double mean = static_cast<double>(sums[channel]) / static_cast<double>(pixels);
  const double square = static_cast<double>(sums[channels + channel]) / static_cast<double>(pixels);
  const double variance = fmax(square - mean * mean, 0.0);
  settle(into, channel, channels, static_cast<float>(mean), static_cast<float>(variance), pixels);
}

// Applies the ReLU to `value`; returns whether it passed.
__device__ bool activate(float& value, bool relu) {
  const bool passes = !(value <= 0);
  if (relu && !passes) value = 0;
  return passes;
}

// Per channel: scale * in + residual_scale * residual + bias; a PReLU's slope is in residual_scale.
template <int kChannels>
struct OutputLine {
  float scale[kChannels], residual_scale[kChannels], bias[kChannels];
};
template <bool kPrelu, int kChannels>
__device__ void load_line(const NormApply& pass, int channels, int channel, OutputLine<kChannels>& line) {
  load(pass.scale_shift + channel, line.scale);
  load(pass.scale_shift + channels + channel, line.bias);
  if constexpr (kPrelu) {
    load_slopes(pass.slope, channel, line.residual_scale);
  } else {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) line.residual_scale[c] = 1;
    if (!pass.residual_scale_shift) return;
    float residual_bias[kChannels];
    load(pass.residual_scale_shift + channel, line.residual_scale);
    load(pass.residual_scale_shift + channels + channel, residual_bias);
#pragma unroll
    for (int c = 0; c < kChannels; ++c) line.bias[c] += residual_bias[c];
  }
}

// A block normalises its part of the tensor, last steps first; a thread keeps scale and shift of its channels
// in registers, and those of a shortcut or the slopes. Per element in a half type: reads 2 bytes (4 with a
// residual), writes 2 and 1/8 of mask; twice that in f32. Bound by memory.
template <typename Of, bool kPrelu>
__global__ void __launch_bounds__(kNormThreads, kBlocksAtOnce)
    norm_apply(NormApply pass, NormPartition partition) {
  using T = Element<Of>;
  const Place place = reversed_place_of<Of>(partition);
  if (place.steps == 0) return;
  OutputLine<kGroupChannels<Of>> line;
  load_line<kPrelu>(pass, partition.channels, place.channel, line);
  for_steps<kAtOnceAlone<Of>>(place, [&](auto at_once, std::int64_t at) {
    Group<Of> x[at_once.value], residual[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u)
      x[u] = load_packed<kGroupElements<Of>>(as<T>(pass.in) + at + u * place.stride);
    if (!kPrelu && pass.residual) {
#pragma unroll
      for (int u = 0; u < at_once.value; ++u)
        residual[u] = load_packed<kGroupElements<Of>>(as<T>(pass.residual) + at + u * place.stride);
    }
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      float y[kGroupElements<Of>];
      unsigned passed = 0;
#pragma unroll
      for (int j = 0; j < kGroupElements<Of>; ++j) {
        const int c = channel_of<Of>(j);
        y[j] = line.scale[c] * x[u].at(j) + line.bias[c];
        if constexpr (kPrelu) {
          y[j] *= y[j] <= 0 ? line.residual_scale[c] : 1;
        } else {
          if (pass.residual) y[j] += line.residual_scale[c] * residual[u].at(j);
          passed |= static_cast<unsigned>(activate(y[j], pass.relu)) << j;
        }
      }
      store<kGroupElements<Of>>(as<T>(pass.out) + at + u * place.stride, y);
      if (!kPrelu && !kHasPlanes<Of> && pass.mask)
        pass.mask[(at + u * place.stride) / kNormGroup] = static_cast<std::uint8_t>(passed);
    }
  });
}

}  // namespace

void launch_norm_statistics(const NormPartition& partition, DType dtype, const std::byte* in, float* partials,
                            const NormStatistics& into, cudaStream_t stream) {
  with_access(partition, dtype, [&]<typename Of>(Of) {
    gpu::launch(norm_statistics<Of>, pass_grid(partition), pass_block(partition),
                sizeof(Moments<kGroupChannels<Of>>) * kNormThreads / 2, stream, in, partials, partition);
  });
  gpu::launch(partition.plane > 1 ? norm_finish<true> : norm_finish<false>, finish_grid(partition),
              finish_block(partition.partial_blocks()), kFinishSharedBytes<kNormSums>, stream, partials,
              partition, into);
}

void launch_norm_finalize(std::int64_t pixels, int channels, const float* sums, const NormStatistics& into,
                          cudaStream_t stream) {
  constexpr unsigned kFinalizeThreads = 128;
  gpu::launch(norm_finalize, dim3(blocks_for(channels, kFinalizeThreads)), dim3(kFinalizeThreads), 0, stream,
              sums, pixels, channels, into);
}

void launch_norm_apply(const NormPartition& partition, DType dtype, const NormApply& pass,
                       cudaStream_t stream) {
  if (pass.slope.data && (pass.residual || pass.mask || pass.relu))
    throw std::logic_error("a PReLU goes with neither a residual nor a ReLU");
  if (pass.mask && partition.plane > 1) throw std::logic_error("masks have a bit per channel of NHWC");
  with_access(partition, dtype, [&]<typename Of>(Of) {
    gpu::launch(pass.slope.data ? norm_apply<Of, true> : norm_apply<Of, false>, pass_grid(partition),
                pass_block(partition), 0, stream, pass, partition);
  });
}

}  // namespace plumb::cuda
