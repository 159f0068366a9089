#include <stdexcept>
#include <type_traits>

#include "kernels/cuda/norm.h"
#include "kernels/cuda/norm_tile.h"
#include "kernels/cuda/reduce.h"

namespace plumb::cuda {
namespace {

// Source of a gradient, beside d_out with a mask or the stored output. d_out_into_sum: adds to d_in.
enum class Source { d_out, two_d_outs, d_out_by_line, d_out_through_prelu, d_out_into_sum };

template <Source kSource>
inline constexpr bool kByLine = kSource == Source::d_out_by_line || kSource == Source::d_out_through_prelu;
// Blocks per multiprocessor. Two with a PReLU: its line and sums need more registers, and 32 KiB in flight
// per multiprocessor suffice.
template <Source kSource>
inline constexpr int kBlocks = kSource == Source::d_out_through_prelu ? 2 : kBlocksAtOnce;

// Sums of the gradient, of its product with (in - mean), and of the slope's gradient.
template <Source kSource>
struct GradientSums : NormSums<kSource == Source::d_out_through_prelu ? kPreluSums : kNormSums> {
  __device__ void merge(const GradientSums& other) {
#pragma unroll
    for (int i = 0; i < GradientSums::kSums; ++i) {
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) this->of[i][j] += other.of[i][j];
    }
  }
};

// Passes where scale * in + shift > 0 or NaN, else through a PReLU's slope.
struct InputLine {
  float scale[kNormGroup], shift[kNormGroup], slope[kNormGroup];
  __device__ float at(int j, float in) const { return scale[j] * in + shift[j]; }
};
template <Source kSource>
__device__ void load_line(const NormGradient& from, int channels, int channel, InputLine& into) {
  if constexpr (kByLine<kSource>) {
    load_floats(from.scale_shift, from.scale_shift_dtype, channel, into.scale);
    load_floats(from.scale_shift, from.scale_shift_dtype, std::int64_t{channels} + channel, into.shift);
  }
  if constexpr (kSource == Source::d_out_through_prelu) load_slopes(from.slope, channel, into.slope);
}

// A thread's loads for one pixel, as stored.
template <typename T, Source kSource>
struct Loaded {
  Group<T> in, d_out, second_d_out, activated;
  unsigned passed = 0xff;  // mask bits

  __device__ void gradient(const NormGradient& from, const InputLine& line,
                           float (&values)[kNormGroup]) const {
#pragma unroll
    for (int j = 0; j < kNormGroup; ++j) values[j] = d_out.at(j);
    if constexpr (kByLine<kSource>) {
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) {
        const float held_back = kSource == Source::d_out_by_line ? 0 : line.slope[j] * values[j];
        values[j] = line.at(j, in.at(j)) <= 0 ? held_back : values[j];
      }
      return;
    }
    if constexpr (kSource == Source::two_d_outs) {
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) values[j] += second_d_out.at(j);
    }
    unsigned bits = passed;
    if (from.activated) {
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) bits &= ~(static_cast<unsigned>(activated.at(j) <= 0) << j);
    }
#pragma unroll
    for (int j = 0; j < kNormGroup; ++j) values[j] = (bits >> j & 1U) != 0 ? values[j] : 0;
  }
};

template <typename T, Source kSource>
__device__ void load_pixel(const NormGradient& from, std::int64_t at, Loaded<T, kSource>& into) {
  into.in = load_packed<kNormGroup>(as<T>(from.in) + at);
  into.d_out = load_packed<kNormGroup>(as<T>(from.d_out) + at);
  if constexpr (kByLine<kSource>) return;
  if constexpr (kSource == Source::two_d_outs)
    into.second_d_out = load_packed<kNormGroup>(as<T>(from.second_d_out) + at);
  if (from.activated) into.activated = load_packed<kNormGroup>(as<T>(from.activated) + at);
  if (from.mask) into.passed = from.mask[at / kNormGroup];
}

template <int kSums>
__device__ void settle(const NormBackward& into, const NormPartition& partition, int channel,
                       const float (&sums)[kSums]) {
  const int channels = partition.channels;
  const auto count = static_cast<float>(partition.pixels);
  const float inv_std = into.inv_std[channel], mean = into.mean[channel];
  const float d_scale = sums[1] * inv_std;
  const float of_gradient = into.scale[channel] * inv_std;
  const float of_in = -of_gradient * inv_std * d_scale / count;
  into.d_scale[channel] = d_scale;
  into.d_bias[channel] = sums[0];
  into.coefficients[channel] = of_gradient;
  into.coefficients[channels + channel] = of_in;
  into.coefficients[2 * channels + channel] = -of_gradient * sums[0] / count - of_in * mean;
  if constexpr (kSums == kPreluSums) into.d_slope[channel] = sums[2];
}

// The last tile to be settled adds up the slopes' gradients of all channels, with one warp.
__device__ void sum_slopes(const NormBackward& into, const NormPartition& partition,
                           const NormScratch& scratch) {
  if (!is_last_block(scratch.counters + norm_counters(partition) - 1, partition.tiles)) return;
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  if (thread >= 32) return;
  float sum = 0;
  for (int channel = 4 * thread; channel < partition.channels; channel += 4 * 32) {
    const float4 four = gpu::load_from_l2(into.d_slope + channel);
    sum += (four.x + four.y) + (four.z + four.w);
  }
  sum = combine_warp(sum, Sum{});
  if (thread == 0) *into.d_shared_slope = sum;
}

// A block reduces its tile of channels over its pixels. Per element in a half type: reads 4 bytes and 1/8 of
// mask, 2 more for a second d_out or for the output in place of the mask, and writes 2 for a residual's
// gradient; twice that in f32. Bound by memory. The last block of a tile settles its channels, 2 to 5 us
// after the last read (docs/performance.md).
template <typename T, Source kSource>
__global__ void __launch_bounds__(kNormThreads, kBlocks<kSource>)
    norm_backward_sums(NormGradient from, std::byte* d_residual, NormScratch scratch, NormPartition partition,
                       NormBackward into) {
  const Place place = place_of(partition, static_cast<int>(blockIdx.y));
  float center[kNormGroup] = {};
  if (place.pixels > 0) load(into.mean + place.channel, center);
  InputLine line = {};
  if (place.pixels > 0) load_line<kSource>(from, partition.channels, place.channel, line);
  GradientSums<kSource> own;
  for_pixels<kAtOnceOfSeveral<T>>(place, [&](auto at_once, std::int64_t at) {
    Loaded<T, kSource> pixel[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) load_pixel(from, at + u * place.stride, pixel[u]);
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      float gradient[kNormGroup];
      pixel[u].gradient(from, line, gradient);
      if (d_residual) store(as<T>(d_residual) + at + u * place.stride, gradient);
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) {
        const float in = pixel[u].in.at(j);
        own.of[0][j] += gradient[j];
        own.of[1][j] += gradient[j] * (in - center[j]);
        if constexpr (kSource == Source::d_out_through_prelu) {
          const float y = line.at(j, in);
          own.of[2][j] += y <= 0 ? pixel[u].d_out.at(j) * y : 0;
        }
      }
    }
  });
  merge_rows(own);
  if (!combine_blocks(own, partition, scratch)) return;
  float totals[GradientSums<kSource>::kSums];
  const int channel = spread_channels(own, partition, totals);
  if (channel >= 0) settle(into, partition, channel, totals);
  if constexpr (kSource == Source::d_out_through_prelu) {
    if (into.d_shared_slope) sum_slopes(into, partition, scratch);
  }
}

// A block computes d_in for its tile of channels at its pixels, last pixels first; a thread keeps the
// coefficients of its 8 channels in registers. Per element in a half type: reads 4 bytes, 1/8 of mask and 2
// for a second d_out (with a residual, its gradient in place of these three) or for the sum to add to, writes
// 2; twice that in f32. Bound by memory.
template <typename T, Source kSource>
__global__ void __launch_bounds__(kNormThreads, kBlocks<kSource>)
    norm_backward_apply(NormGradient from, const float* coefficients, std::byte* d_in,
                        NormPartition partition) {
  const Place place = reversed_place_of(partition);
  if (place.pixels == 0) return;
  float of_gradient[kNormGroup], of_in[kNormGroup], constant[kNormGroup];
  const std::int64_t channels = partition.channels;
  load_floats(coefficients + place.channel, of_gradient);
  load_floats(coefficients + channels + place.channel, of_in);
  load_floats(coefficients + 2 * channels + place.channel, constant);
  InputLine line = {};
  load_line<kSource>(from, partition.channels, place.channel, line);
  for_pixels<kAtOnceOfSeveral<T>>(place, [&](auto at_once, std::int64_t at) {
    Loaded<T, kSource> pixel[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) load_pixel(from, at + u * place.stride, pixel[u]);
    if constexpr (kSource == Source::d_out_into_sum) {
#pragma unroll
      for (int u = 0; u < at_once.value; ++u)
        pixel[u].second_d_out = load_packed<kNormGroup>(as<T>(d_in) + at + u * place.stride);
    }
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      float values[kNormGroup];
      pixel[u].gradient(from, line, values);
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) {
        values[j] = of_gradient[j] * values[j] + (of_in[j] * pixel[u].in.at(j) + constant[j]);
        if constexpr (kSource == Source::d_out_into_sum) values[j] += pixel[u].second_d_out.at(j);
      }
      store(as<T>(d_in) + at + u * place.stride, values);
    }
  });
}

// Calls `use` with the gradient's Source as a constant.
template <typename Use>
void with_source_of(const NormGradient& gradient, Use&& use) {
  using enum Source;
  if (gradient.scale_shift && gradient.second_d_out)
    throw std::logic_error("a norm's scale and shift mask one gradient of its output, not two");
  if (gradient.slope.data && !gradient.scale_shift)
    throw std::logic_error("backward through a PReLU wants the norm's scale and shift");
  if (gradient.slope.data) return use(std::integral_constant<Source, d_out_through_prelu>{});
  if (gradient.scale_shift) return use(std::integral_constant<Source, d_out_by_line>{});
  if (gradient.second_d_out) return use(std::integral_constant<Source, two_d_outs>{});
  use(std::integral_constant<Source, d_out>{});
}

}  // namespace

void launch_norm_backward_sums(const NormPartition& partition, DType dtype, const NormGradient& gradient,
                               std::byte* d_residual, const NormScratch& scratch, const NormBackward& into,
                               cudaStream_t stream) {
  with_type_of(dtype, [&](auto zero) {
    using T = decltype(zero);
    with_source_of(gradient, [&](auto source) {
      gpu::launch(norm_backward_sums<T, source.value>, pass_grid(partition), pass_block(partition),
                  kMergeBytes<GradientSums<source.value>>, stream, gradient, d_residual, scratch, partition,
                  into);
    });
  });
}

void launch_norm_backward_apply(const NormPartition& partition, DType dtype, const NormGradient& gradient,
                                const float* coefficients, const NormInputGradient& d_in,
                                cudaStream_t stream) {
  if (d_in.adds && (gradient.scale_shift || gradient.second_d_out))
    throw std::logic_error("a norm adds to a gradient what one plain d_out makes of it");
  with_type_of(dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto launch = [&](auto source) {
      gpu::launch(norm_backward_apply<T, source.value>, pass_grid(partition), pass_block(partition), 0,
                  stream, gradient, coefficients, d_in.data, partition);
    };
    if (d_in.adds) return launch(std::integral_constant<Source, Source::d_out_into_sum>{});
    with_source_of(gradient, launch);
  });
}

}  // namespace plumb::cuda
