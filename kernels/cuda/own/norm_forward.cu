#include "kernels/cuda/own/norm.h"
#include "kernels/cuda/own/norm_tile.h"

namespace plumb::cuda {
namespace {

// Per channel: the mean, and the sum of squared differences from it.
struct Moments : NormSums<kNormSums> {
  // Source: T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing
  // sample variances", 1979.
  __device__ void merge(const Moments& other) {
    const float total = count + other.count;
    const float share = total > 0 ? other.count / total : 0;
#pragma unroll
    for (int c = 0; c < kNormGroup; ++c) {
      const float difference = other.of[0][c] - of[0][c];
      of[0][c] += difference * share;
      of[1][c] += other.of[1][c] + difference * difference * (count * share);
    }
    count = total;
  }
};

// A block reduces its channels over its part of the tensor. Each thread sums differences from its first
// element, so that a large mean costs a small variance no precision. Reads each element once: 2 bytes in a
// half type, 4 in f32; bound by memory (3 additions or multiply-adds per element). The last block of a tile
// settles its channels, 2 to 5 us after the last read (results/appendix/gpu_measured.md).
template <typename T>
__global__ void __launch_bounds__(kNormThreads, 4)
    norm_statistics(const std::byte* in, NormScratch scratch, NormPartition partition, NormStatistics into) {
  const Place place = place_of(partition, blockIdx);
  const auto* const elements = as<T>(in);
  float shift[kNormGroup] = {}, sum[kNormGroup] = {};
  Moments own;
  if (place.steps > 0) load(elements + place.first, shift);
  for_steps<kAtOnceAlone<T>>(place, [&](auto at_once, std::int64_t at) {
    Group<T> x[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) x[u] = load_packed<kNormGroup>(elements + at + u * place.stride);
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) {
        const float difference = x[u].at(j) - shift[j];
        sum[j] += difference;
        own.of[1][j] += difference * difference;
      }
    }
  });
  if (place.steps > 0) {
    own.count = static_cast<float>(place.steps);
#pragma unroll
    for (int c = 0; c < kNormGroup; ++c) {
      const float offset = sum[c] / own.count;
      own.of[0][c] = shift[c] + offset;
      own.of[1][c] = fmaxf(own.of[1][c] - offset * sum[c], 0);
    }
  }
  if (!combine_blocks(own, partition, scratch)) return;
  float moments[kNormSums];
  const int channel = spread_channels(own, partition, moments);
  const std::int64_t count = partition.elements_per_channel;
  if (channel >= 0)
    settle(into, channel, partition.channels, moments[0], moments[1] / static_cast<float>(count), count);
}

struct ChannelMoments {
  float mean, variance;
};
// The difference of two large sums is taken in f64.
__device__ ChannelMoments moments_of(const float* sums, std::int64_t pixels, int channels, int channel) {
  const double mean = static_cast<double>(sums[channel]) / static_cast<double>(pixels);
  const double square = static_cast<double>(sums[channels + channel]) / static_cast<double>(pixels);
  return {static_cast<float>(mean), static_cast<float>(fmax(square - mean * mean, 0.0))};
}

// One channel per thread. Tens of bytes per channel: bound by launch latency.
__global__ void norm_finalize(const float* sums, std::int64_t pixels, int channels, NormStatistics into) {
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (channel >= channels) return;
  const auto [mean, variance] = moments_of(sums, pixels, channels, channel);
  settle(into, channel, channels, mean, variance, pixels);
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
__device__ void load_line(const NormApply& pass, int channels, int channel, bool has_line,
                          OutputLine<kChannels>& line) {
  if (!has_line) {
    load(pass.scale_shift + channel, line.scale);
    load(pass.scale_shift + channels + channel, line.bias);
  }
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

// Does norm_finalize's work for a block's channels, each by one thread. Every block keeps scale and shift in
// shared memory; those of the first steps store them, with the statistics.
template <int kChannels>
__device__ void finalize(const NormInputSums& from, const NormPartition& partition, int channel,
                         OutputLine<kChannels>& line) {
  const int lane = static_cast<int>(threadIdx.x) * kChannels,
            width = static_cast<int>(blockDim.x) * kChannels;
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int own = channel - lane + thread, channels = partition.channels;
  float* const lines = gpu::dynamic_shared<float>();
  if (thread < width && own < channels) {
    const std::int64_t pixels = partition.elements_per_channel;
    const auto [mean, variance] = moments_of(from.sums, pixels, channels, own);
    const NormLine made = line_of(from.statistics, own, mean, variance);
    lines[thread] = made.scale, lines[width + thread] = made.shift;
    if (blockIdx.y == 0) settle(from.statistics, own, channels, mean, variance, pixels);
  }
  __syncthreads();
  load(lines + lane, line.scale);
  load(lines + width + lane, line.bias);
}

// A block normalizes its part of the tensor, last steps first; a thread keeps scale and shift of its channels
// in registers, and those of a shortcut or the slopes. From input sums each block works them out, tens of
// bytes per channel. With out_sums the last block of a tile settles them, as norm_statistics does. Per
// element in a half type: reads 2 bytes (4 with a residual), writes 2 and 1/8 of mask; twice that in f32.
// Bound by memory.
template <typename T, bool kPrelu, bool kSums>
__global__ void __launch_bounds__(kNormThreads, kBlocksAtOnce)
    norm_apply(NormApply pass, NormPartition partition, NormInputSums from) {
  const Place place = reversed_place_of<kSums>(partition);
  OutputLine<kNormGroup> line{};
  OutputSums own;
  bool has_line = false;
  if constexpr (sizeof(T) == sizeof(__half)) {
    has_line = from.sums != nullptr;
    if (has_line) finalize(from, partition, place.channel, line);
  }
  if (!kSums && place.steps == 0) return;
  if (!kSums || place.steps > 0) load_line<kPrelu>(pass, partition.channels, place.channel, has_line, line);
  for_steps<kAtOnceAlone<T>>(place, [&](auto at_once, std::int64_t at) {
    Group<T> x[at_once.value], residual[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u)
      x[u] = load_packed<kNormGroup>(as<T>(pass.in) + at + u * place.stride);
    if (!kPrelu && !kSums && pass.residual) {
#pragma unroll
      for (int u = 0; u < at_once.value; ++u)
        residual[u] = load_packed<kNormGroup>(as<T>(pass.residual) + at + u * place.stride);
    }
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      float y[kNormGroup];
      unsigned passed = 0;
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) {
        y[j] = line.scale[j] * x[u].at(j) + line.bias[j];
        if constexpr (kPrelu) {
          y[j] *= y[j] <= 0 ? line.residual_scale[j] : 1;
        } else {
          if (!kSums && pass.residual) y[j] += line.residual_scale[j] * residual[u].at(j);
          passed |= static_cast<unsigned>(activate(y[j], pass.relu)) << j;
        }
        if constexpr (kSums) {
          y[j] = as_factor<T>(y[j], pass.tf32);
          own.of[0][j] += to_float(from_float<T>(y[j]));
        }
      }
      store<kNormGroup>(as<T>(pass.out) + at + u * place.stride, y);
      if (!kPrelu && pass.mask)
        pass.mask[(at + u * place.stride) / kNormGroup] = static_cast<std::uint8_t>(passed);
    }
  });
  if constexpr (kSums) {
    __syncthreads();  // lines lie where sums are merged
    settle_sums(own, partition, pass.scratch, pass.out_sums);
  }
}

// As norm_apply with sums, but nothing is computed. Per element of the grid: reads 2 bytes (4 in f32), writes
// as many or none. Bound by memory.
template <typename T>
__global__ void __launch_bounds__(kNormThreads, 4)
    sample_pixels(PixelSample sample, NormPartition partition) {
  Place place = place_of(partition, blockIdx);
  place.first = (place.first - place.channel) / partition.channels;  // in pixels
  place.stride = partition.rows;
  OutputSums own;
  for_steps<kAtOnceAlone<T>>(place, [&](auto at_once, std::int64_t at) {
    Group<T> x[at_once.value];
    const auto element_of = [&](std::int64_t pixel) { return pixel * partition.channels + place.channel; };
#pragma unroll
    for (int u = 0; u < at_once.value; ++u)
      x[u] = load_packed<kNormGroup>(
          as<T>(sample.in) + element_of(sample.grid.pixel_of(static_cast<int>(at + u * place.stride))));
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      float values[kNormGroup];
#pragma unroll
      for (int c = 0; c < kNormGroup; ++c) {
        values[c] = as_factor<T>(x[u].at(c), sample.tf32);
        own.of[0][c] += values[c];
      }
      if (sample.out) store(as<T>(sample.out) + element_of(at + u * place.stride), values);
    }
  });
  settle_sums(own, partition, sample.scratch, sample.sums);
}

}  // namespace

void launch_norm_statistics(const NormPartition& partition, DType dtype, const std::byte* in,
                            const NormScratch& scratch, const NormStatistics& into, cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    const dim3 block = pass_block(partition);
    gpu::launch(norm_statistics<T>, pass_grid(partition), block, merge_bytes<Moments>(block), stream, in,
                scratch, partition, into);
  });
}

void launch_norm_finalize(std::int64_t pixels, int channels, const float* sums, const NormStatistics& into,
                          cudaStream_t stream) {
  constexpr unsigned kFinalizeThreads = 128;
  gpu::launch(norm_finalize, dim3(blocks_for(channels, kFinalizeThreads)), dim3(kFinalizeThreads), 0, stream,
              sums, pixels, channels, into);
}

void launch_norm_apply(const NormPartition& partition, DType dtype, const NormApply& pass,
                       cudaStream_t stream, const NormInputSums& from) {
  with_type_of(dtype, [&]<typename T>(T) {
    const dim3 block = pass_block(partition);
    const auto kernel = pass.out_sums     ? norm_apply<T, false, true>
                        : pass.slope.data ? norm_apply<T, true, false>
                                          : norm_apply<T, false, false>;
    const std::size_t line_bytes = from.sums ? 2 * sizeof(float) * block.x * kNormGroup : std::size_t{0};
    gpu::launch(kernel, pass_grid(partition), block,
                std::max(line_bytes, pass.out_sums ? merge_bytes<OutputSums>(block) : 0), stream, pass,
                partition, from);
  });
}

void launch_sample_pixels(const NormPartition& partition, DType dtype, const PixelSample& sample,
                          cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    const dim3 block = pass_block(partition);
    gpu::launch(sample_pixels<T>, pass_grid(partition), block, merge_bytes<OutputSums>(block), stream, sample,
                partition);
  });
}

}  // namespace plumb::cuda
