#include <stdexcept>
#include <type_traits>

#include "kernels/cuda/norm.h"
#include "kernels/cuda/norm_tile.h"

namespace plumb::cuda {
namespace {

struct GradientSums {
  float gradient[kNormGroup] = {};
  float product[kNormGroup] = {};  // of the gradient with (in - mean)
  float unused = 0;                // to 17 floats, which spread over all banks of shared memory

  __device__ void merge(const GradientSums& other) {
#pragma unroll
    for (int j = 0; j < kNormGroup; ++j) {
      gradient[j] += other.gradient[j];
      product[j] += other.product[j];
    }
  }
};

// Where a gradient comes from, beside d_out and what a mask or the stored output say of it.
enum class Source { d_out, two_d_outs, d_out_by_factors };

// A thread's factors: passed where slope * in + offset > 0 (a NaN passes, too).
struct Line {
  float slope[kNormGroup], offset[kNormGroup];
};
template <bool kWhole, Source kSource>
__device__ void load_line(const NormFactors& factors, int channels, const Place& place, Line& into) {
  if constexpr (kSource == Source::d_out_by_factors) {
    load_factors<kWhole>(factors.data, factors.dtype, place.channel, place, into.slope);
    load_factors<kWhole>(factors.data, factors.dtype, std::int64_t{channels} + place.channel, place,
                         into.offset);
  }
}

// What a thread has asked for at one pixel, as it is stored.
template <typename T, Source kSource>
struct Loaded {
  Group<T> in, d_out, second_d_out, activated;
  unsigned passed = 0xff;  // bits of the mask

  __device__ void gradient(const NormGradient& from, const Line& line, float (&values)[kNormGroup]) const {
#pragma unroll
    for (int j = 0; j < kNormGroup; ++j) values[j] = d_out.at(j);
    if constexpr (kSource == Source::d_out_by_factors) {
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j)
        values[j] = line.slope[j] * in.at(j) + line.offset[j] <= 0 ? 0 : values[j];
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

template <bool kWhole>
__device__ unsigned load_bits(const std::uint8_t* mask, std::int64_t at, int channels) {
  if constexpr (kWhole) return mask[at / kNormGroup];
  unsigned bits = 0;
  for (int j = 0; j < channels; ++j) bits |= (mask[(at + j) / 8] >> ((at + j) % 8) & 1U) << j;
  return bits;
}

template <bool kWhole, typename T, Source kSource>
__device__ void load_pixel(const NormGradient& from, std::int64_t at, int channels,
                           Loaded<T, kSource>& into) {
  into.in = load_group<kWhole>(as<T>(from.in) + at, channels);
  into.d_out = load_group<kWhole>(as<T>(from.d_out) + at, channels);
  if constexpr (kSource == Source::d_out_by_factors) return;
  if constexpr (kSource == Source::two_d_outs)
    into.second_d_out = load_group<kWhole>(as<T>(from.second_d_out) + at, channels);
  if (from.activated) into.activated = load_group<kWhole>(as<T>(from.activated) + at, channels);
  if (from.mask) into.passed = load_bits<kWhole>(from.mask, at, channels);
}

// A block reduces its tile of channels over its pixels. Per element in a half type: reads 4 bytes and 1/8 of
// mask, 2 more for a second d_out or the output in the mask's place, and writes 2 for a residual's gradient;
// twice that in f32. Bound by memory.
template <typename T, bool kWhole, Source kSource>
__global__ void __launch_bounds__(kNormThreads, kBlocksAtOnce<kWhole>)
    norm_backward_sums(NormGradient from, const float* mean, std::byte* d_residual, float* partials,
                       NormPartition partition) {
  const Place place = place_of(partition, static_cast<int>(blockIdx.y));
  float center[kNormGroup] = {};
  if (place.pixels > 0) load_floats<kWhole>(mean + place.channel, place.channels, center);
  Line line = {};
  if (place.pixels > 0) load_line<kWhole, kSource>(from.factors, partition.channels, place, line);
  GradientSums own;
  for_pixels<kAtOnceOfSeveral<T, kWhole>>(place, [&](auto at_once, std::int64_t at) {
    Loaded<T, kSource> pixel[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u)
      load_pixel<kWhole>(from, at + u * place.stride, place.channels, pixel[u]);
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      float gradient[kNormGroup];
      pixel[u].gradient(from, line, gradient);
      if (d_residual)
        store_group<kWhole>(as<T>(d_residual) + at + u * place.stride, gradient, place.channels);
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) {
        own.gradient[j] += gradient[j];
        own.product[j] += gradient[j] * (pixel[u].in.at(j) - center[j]);
      }
    }
  });
  merge_rows(own);
  if (threadIdx.y != 0 || place.channels <= 0) return;
  float* const sums = partials + std::int64_t{blockIdx.y} * 2 * partition.channels + place.channel;
  store_group<kWhole>(sums, own.gradient, place.channels);
  store_group<kWhole>(sums + partition.channels, own.product, place.channels);
}

// A block adds up the partial sums of 32 channels and settles what follows. Reads 8 bytes per channel and
// block of pixels, out of the L2 cache; its time is that of a launch.
__global__ void __launch_bounds__(kFinishThreads, 1)
    norm_backward_finish(const float* partials, NormPartition partition, NormBackward into) {
  const int channels = partition.channels;
  const int channel = static_cast<int>(blockIdx.x * kFinishColumns + threadIdx.x);
  const float2 sum = sum_partials(partials, partition, channel, [](int, float2 sums) { return sums; });
  if (threadIdx.y != 0 || channel >= channels) return;
  const auto count = static_cast<float>(partition.pixels);
  const float inverse_deviation = into.inverse_deviation[channel];
  const float d_scale = sum.y * inverse_deviation;
  const float of_gradient = into.scale[channel] * inverse_deviation;
  const float of_in = -of_gradient * inverse_deviation * d_scale / count;
  into.d_scale[channel] = d_scale;
  into.d_bias[channel] = sum.x;
  into.coefficients[channel] = of_gradient;
  into.coefficients[channels + channel] = of_in;
  into.coefficients[2 * channels + channel] = -of_gradient * sum.x / count - of_in * into.mean[channel];
}

// A block computes d_in for its tile of channels at its pixels, last pixels first; a thread keeps the
// coefficients of its 8 channels in registers. Per element in a half type: reads 4 bytes, 1/8 of mask and 2
// for a second d_out (with a residual its gradient in place of these three), writes 2; twice that in f32.
// Bound by memory.
template <typename T, bool kWhole, Source kSource>
__global__ void __launch_bounds__(kNormThreads, kBlocksAtOnce<kWhole>)
    norm_backward_apply(NormGradient from, NormFactors coefficients, std::byte* d_in,
                        NormPartition partition) {
  const Place place = reversed_place_of(partition);
  if (place.pixels == 0) return;
  float of_gradient[kNormGroup], of_in[kNormGroup], constant[kNormGroup];
  const std::int64_t channels = partition.channels;
  load_factors<kWhole>(coefficients.data, coefficients.dtype, place.channel, place, of_gradient);
  load_factors<kWhole>(coefficients.data, coefficients.dtype, channels + place.channel, place, of_in);
  load_factors<kWhole>(coefficients.data, coefficients.dtype, 2 * channels + place.channel, place, constant);
  Line line = {};
  load_line<kWhole, kSource>(from.factors, partition.channels, place, line);
  for_pixels<kAtOnceOfSeveral<T, kWhole>>(place, [&](auto at_once, std::int64_t at) {
    Loaded<T, kSource> pixel[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u)
      load_pixel<kWhole>(from, at + u * place.stride, place.channels, pixel[u]);
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      float values[kNormGroup];
      pixel[u].gradient(from, line, values);
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j)
        values[j] = of_gradient[j] * values[j] + (of_in[j] * pixel[u].in.at(j) + constant[j]);
      store_group<kWhole>(as<T>(d_in) + at + u * place.stride, values, place.channels);
    }
  });
}

// Calls `use` with the gradient's Source as a constant.
template <typename Use>
void with_source_of(const NormGradient& gradient, Use&& use) {
  using enum Source;
  if (gradient.factors.data && gradient.second_d_out)
    throw std::logic_error("a norm's factors mask one gradient of its output, not two");
  if (gradient.factors.data) return use(std::integral_constant<Source, d_out_by_factors>{});
  if (gradient.second_d_out) return use(std::integral_constant<Source, two_d_outs>{});
  use(std::integral_constant<Source, d_out>{});
}

}  // namespace

void launch_norm_backward_sums(const NormPartition& partition, DType dtype, const NormGradient& gradient,
                               const float* mean, std::byte* d_residual, float* partials,
                               cudaStream_t stream) {
  with_type_of(dtype, [&](auto zero) {
    using T = decltype(zero);
    with_source_of(gradient, [&](auto source) {
      const auto kernel = partition.channels % kNormGroup == 0 ? norm_backward_sums<T, true, source.value>
                                                               : norm_backward_sums<T, false, source.value>;
      gpu::launch(kernel, pass_grid(partition), pass_block(partition),
                  sizeof(GradientSums) * kNormThreads / 2, stream, gradient, mean, d_residual, partials,
                  partition);
    });
  });
}

void launch_norm_backward_finish(const NormPartition& partition, const float* partials,
                                 const NormBackward& into, cudaStream_t stream) {
  gpu::launch(norm_backward_finish, finish_grid(partition), dim3(kFinishColumns, kFinishRows),
              kFinishSharedBytes, stream, partials, partition, into);
}

void launch_norm_backward_apply(const NormPartition& partition, DType dtype, const NormGradient& gradient,
                                const NormFactors& coefficients, std::byte* d_in, cudaStream_t stream) {
  with_type_of(dtype, [&](auto zero) {
    using T = decltype(zero);
    with_source_of(gradient, [&](auto source) {
      const auto kernel = partition.channels % kNormGroup == 0 ? norm_backward_apply<T, true, source.value>
                                                               : norm_backward_apply<T, false, source.value>;
      gpu::launch(kernel, pass_grid(partition), pass_block(partition), 0, stream, gradient, coefficients,
                  d_in, partition);
    });
  });
}

}  // namespace plumb::cuda
