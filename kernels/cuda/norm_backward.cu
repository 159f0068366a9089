#include <stdexcept>
#include <type_traits>

#include "kernels/cuda/norm.h"
#include "kernels/cuda/norm_coefficients.h"
#include "kernels/cuda/norm_tile.h"
#include "kernels/cuda/reduce.h"

namespace plumb::cuda {
namespace {

// Source of a gradient, beside d_out with a mask or the stored output. d_out_into_sum: adds to d_in. pair:
// one d_out or two, of a shortcut's norm, too.
enum class Source {
  d_out,
  two_d_outs,
  d_out_by_line,
  d_out_through_prelu,
  d_out_into_sum,
  pair,
  two_d_outs_by_line,
};

template <Source kSource>
inline constexpr bool kByLine = kSource == Source::d_out_by_line || kSource == Source::two_d_outs_by_line ||
                                kSource == Source::d_out_through_prelu;
// Adds second_d_out, always; a pair does if there is one.
template <Source kSource>
inline constexpr bool kHasTwo = kSource == Source::two_d_outs || kSource == Source::two_d_outs_by_line;
// With a third sum per channel: a PReLU's slope, a shortcut's norm.
template <Source kSource>
inline constexpr bool kHasThirdSum = kSource == Source::d_out_through_prelu || kSource == Source::pair;
// Blocks per multiprocessor. Two where a PReLU's line, or a shortcut's sums and coefficients, need more
// registers: 32 KiB in flight per multiprocessor suffice.
template <Source kSource>
inline constexpr int kBlocks = kHasThirdSum<kSource> ? 2 : kBlocksAtOnce;

// Sums of the gradient, of its product with (in - mean), and of the slope's gradient or of the product with
// (shortcut_in - its mean).
template <typename Of, Source kSource>
struct GradientSums : NormSums<Of, kHasThirdSum<kSource> ? kMostNormSums : kNormSums> {
  __device__ void merge(const GradientSums& other) {
#pragma unroll
    for (int i = 0; i < GradientSums::kSums; ++i) {
#pragma unroll
      for (int c = 0; c < kGroupChannels<Of>; ++c) this->of[i][c] += other.of[i][c];
    }
  }
};

// Passes where scale * in + shift > 0 or NaN, else through a PReLU's slope.
template <int kChannels>
struct InputLine {
  float scale[kChannels], shift[kChannels], slope[kChannels];
  __device__ float at(int channel, float in) const { return scale[channel] * in + shift[channel]; }
};
template <Source kSource, int kChannels>
__device__ void load_line(const NormGradient& from, int channels, int channel, InputLine<kChannels>& into) {
  if constexpr (kByLine<kSource>) {
    load_floats(from.scale_shift, from.scale_shift_dtype, channel, into.scale);
    load_floats(from.scale_shift, from.scale_shift_dtype, std::int64_t{channels} + channel, into.shift);
  }
  if constexpr (kSource == Source::d_out_through_prelu) load_slopes(from.slope, channel, into.slope);
}

// A thread's loads for one step, as stored.
template <typename Of, Source kSource>
struct Loaded {
  Group<Of> in, d_out, second_d_out, activated, shortcut_in;
  unsigned passed = 0xff;  // mask bits

  __device__ void gradient(const NormGradient& from, const InputLine<kGroupChannels<Of>>& line,
                           float (&values)[kGroupElements<Of>]) const {
#pragma unroll
    for (int j = 0; j < kGroupElements<Of>; ++j) values[j] = d_out.at(j);
    if (kHasTwo<kSource> || (kSource == Source::pair && from.second_d_out)) {
#pragma unroll
      for (int j = 0; j < kGroupElements<Of>; ++j) values[j] += second_d_out.at(j);
    }
    if constexpr (kByLine<kSource>) {
#pragma unroll
      for (int j = 0; j < kGroupElements<Of>; ++j) {
        const int c = channel_of<Of>(j);
        const float held_back = kSource == Source::d_out_through_prelu ? line.slope[c] * values[j] : 0;
        values[j] = line.at(c, in.at(j)) <= 0 ? held_back : values[j];
      }
      return;
    }
    unsigned bits = passed;
    if (from.activated) {
#pragma unroll
      for (int j = 0; j < kGroupElements<Of>; ++j)
        bits &= ~(static_cast<unsigned>(activated.at(j) <= 0) << j);
    }
#pragma unroll
    for (int j = 0; j < kGroupElements<Of>; ++j) values[j] = (bits >> j & 1U) != 0 ? values[j] : 0;
  }
};

template <typename Of, Source kSource>
__device__ void load_step(const NormGradient& from, std::int64_t at, Loaded<Of, kSource>& into) {
  using T = Element<Of>;
  into.in = load_packed<kGroupElements<Of>>(as<T>(from.in) + at);
  into.d_out = load_packed<kGroupElements<Of>>(as<T>(from.d_out) + at);
  if constexpr (kSource == Source::pair)
    into.shortcut_in = load_packed<kGroupElements<Of>>(as<T>(from.shortcut_in) + at);
  if (kHasTwo<kSource> || (kSource == Source::pair && from.second_d_out))
    into.second_d_out = load_packed<kGroupElements<Of>>(as<T>(from.second_d_out) + at);
  if constexpr (kByLine<kSource>) return;
  if (from.activated) into.activated = load_packed<kGroupElements<Of>>(as<T>(from.activated) + at);
  if (!kHasPlanes<Of> && from.mask) into.passed = from.mask[at / kNormGroup];
}

__device__ inline void settle(const NormBackward& into, const NormPartition& partition, int channel,
                              float gradient, float product) {
  NormGradientSums{gradient, product}.settle(into, partition.elements_per_channel, partition.channels,
                                             channel);
}

// The last tile to be settled adds up the slopes' gradients of all channels, with one warp.
template <typename Of>
__device__ void sum_slopes(const NormBackward& into, const NormPartition& partition,
                           const NormScratch& scratch) {
  if (!is_last_block(scratch.counters + norm_counters(partition) - 1, partition.tiles)) return;
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  if (thread >= 32) return;
  constexpr int kAtOnce = kHasPlanes<Of> ? 1 : 4;
  float sum = 0;
  for (int channel = kAtOnce * thread; channel < partition.channels; channel += kAtOnce * 32) {
    float slopes[kAtOnce];
    load_from_l2(into.d_slope + channel, slopes);
#pragma unroll
    for (const float slope : slopes) sum += slope;
  }
  sum = combine_warp(sum, Sum{});
  if (thread == 0) *into.d_shared_slope = sum;
}

// A block reduces its channels over its part of the tensor. Per element in a half type: reads 4 bytes and 1/8
// of mask, 2 more for a second d_out, for the output in place of the mask or for a shortcut, and writes 2 for
// a residual's gradient; twice that in f32. Bound by memory. The last block of a tile settles its channels,
// some 5 us after the last read.
template <typename Of, Source kSource>
__global__ void __launch_bounds__(kNormThreads, kBlocks<kSource>)
    norm_backward_sums(NormGradient from, std::byte* d_residual, NormScratch scratch, NormPartition partition,
                       NormBackward into, NormBackward shortcut) {
  const Place place = place_of<Of>(partition, blockIdx);
  float center[kGroupChannels<Of>] = {}, shortcut_center[kGroupChannels<Of>] = {};
  if (place.steps > 0) load(into.mean + place.channel, center);
  if (kSource == Source::pair && place.steps > 0) load(shortcut.mean + place.channel, shortcut_center);
  InputLine<kGroupChannels<Of>> line = {};
  if (place.steps > 0) load_line<kSource>(from, partition.channels, place.channel, line);
  GradientSums<Of, kSource> own;
  for_steps<kAtOnceOfSeveral<Of>>(place, [&](auto at_once, std::int64_t at) {
    Loaded<Of, kSource> loaded[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) load_step(from, at + u * place.stride, loaded[u]);
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      float gradient[kGroupElements<Of>];
      loaded[u].gradient(from, line, gradient);
      if (!kByLine<kSource> && d_residual)
        store(as<Element<Of>>(d_residual) + at + u * place.stride, gradient);
#pragma unroll
      for (int j = 0; j < kGroupElements<Of>; ++j) {
        const int c = channel_of<Of>(j);
        const float in = loaded[u].in.at(j);
        own.of[0][c] += gradient[j];
        own.of[1][c] += gradient[j] * (in - center[c]);
        if constexpr (kSource == Source::d_out_through_prelu) {
          const float y = line.at(c, in);
          own.of[2][c] += y <= 0 ? loaded[u].d_out.at(j) * y : 0;
        }
        if constexpr (kSource == Source::pair)
          own.of[2][c] += gradient[j] * (loaded[u].shortcut_in.at(j) - shortcut_center[c]);
      }
    }
  });
  merge_rows(own);
  if (!combine_blocks(own, partition, scratch)) return;
  float totals[GradientSums<Of, kSource>::kSums];
  const int channel = spread_channels(own, partition, totals);
  if (channel >= 0) {
    settle(into, partition, channel, totals[0], totals[1]);
    if constexpr (kSource == Source::pair) settle(shortcut, partition, channel, totals[0], totals[2]);
    if constexpr (kSource == Source::d_out_through_prelu) into.d_slope[channel] = totals[2];
  }
  if constexpr (kSource == Source::d_out_through_prelu) {
    if (into.d_shared_slope) sum_slopes<Of>(into, partition, scratch);
  }
}

// A block computes d_in for its part of the tensor, last steps first; a thread keeps the coefficients of its
// channels in registers. Per element in a half type: reads 4 bytes, 1/8 of mask and 2 for a second d_out
// (with a residual, its gradient in place of these three) or for the sum to add to, writes 2; 4 more with a
// shortcut; twice that in f32. Bound by memory.
template <typename Of, Source kSource>
__global__ void __launch_bounds__(kNormThreads, kBlocks<kSource>)
    norm_backward_apply(NormGradient from, const float* coefficients, NormInputGradient into,
                        NormPartition partition) {
  const Place place = reversed_place_of<Of>(partition);
  if (place.steps == 0) return;
  const std::int64_t channels = partition.channels;
  Coefficients<kGroupChannels<Of>> own, of_shortcut;
  own.load(coefficients, channels, place.channel);
  if constexpr (kSource == Source::pair)
    of_shortcut.load(coefficients + 3 * channels, channels, place.channel);
  InputLine<kGroupChannels<Of>> line = {};
  load_line<kSource>(from, partition.channels, place.channel, line);
  for_steps<kAtOnceOfSeveral<Of>>(place, [&](auto at_once, std::int64_t at) {
    Loaded<Of, kSource> loaded[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) load_step(from, at + u * place.stride, loaded[u]);
    if constexpr (kSource == Source::d_out_into_sum) {
#pragma unroll
      for (int u = 0; u < at_once.value; ++u)
        loaded[u].second_d_out =
            load_packed<kGroupElements<Of>>(as<Element<Of>>(into.data) + at + u * place.stride);
    }
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      float gradient[kGroupElements<Of>], d_in[kGroupElements<Of>];
      loaded[u].gradient(from, line, gradient);
#pragma unroll
      for (int j = 0; j < kGroupElements<Of>; ++j) {
        d_in[j] = own.d_in(channel_of<Of>(j), gradient[j], loaded[u].in.at(j));
        if constexpr (kSource == Source::d_out_into_sum) d_in[j] += loaded[u].second_d_out.at(j);
      }
      store(as<Element<Of>>(into.data) + at + u * place.stride, d_in);
      if constexpr (kSource == Source::pair) {
#pragma unroll
        for (int j = 0; j < kGroupElements<Of>; ++j)
          d_in[j] = of_shortcut.d_in(channel_of<Of>(j), gradient[j], loaded[u].shortcut_in.at(j));
        store(as<Element<Of>>(into.shortcut) + at + u * place.stride, d_in);
      }
    }
  });
}

// Calls `use` with the gradient's Source as a constant.
template <typename Use>
void with_source_of(const NormPartition& partition, const NormGradient& gradient, Use&& use) {
  using enum Source;
  if (gradient.mask && partition.plane > 1) throw std::logic_error("masks have a bit per channel of NHWC");
  if (gradient.scale_shift && gradient.shortcut_in)
    throw std::logic_error("a norm's scale and shift mask the gradient of no other norm");
  if (gradient.slope.data && !gradient.scale_shift)
    throw std::logic_error("backward through a PReLU wants the norm's scale and shift");
  if (gradient.slope.data && gradient.second_d_out)
    throw std::logic_error("backward through a PReLU takes one gradient of its output");
  if (gradient.slope.data) return use(std::integral_constant<Source, d_out_through_prelu>{});
  if (gradient.scale_shift && gradient.second_d_out)
    return use(std::integral_constant<Source, two_d_outs_by_line>{});
  if (gradient.scale_shift) return use(std::integral_constant<Source, d_out_by_line>{});
  if (gradient.shortcut_in) return use(std::integral_constant<Source, pair>{});
  if (gradient.second_d_out) return use(std::integral_constant<Source, two_d_outs>{});
  use(std::integral_constant<Source, d_out>{});
}

}  // namespace

void launch_norm_backward_sums(const NormPartition& partition, DType dtype, const NormGradient& gradient,
                               std::byte* d_residual, const NormScratch& scratch, const NormBackward& into,
                               const NormBackward& shortcut, cudaStream_t stream) {
  if (gradient.scale_shift && d_residual)
    throw std::logic_error("a norm's scale and shift mask no residual's gradient");
  with_access(partition, dtype, [&]<typename Of>(Of) {
    with_source_of(partition, gradient, [&](auto source) {
      const dim3 block = pass_block(partition);
      gpu::launch(norm_backward_sums<Of, source.value>, pass_grid(partition), block,
                  merge_bytes<GradientSums<Of, source.value>>(block), stream, gradient, d_residual, scratch,
                  partition, into, shortcut);
    });
  });
}

void launch_norm_backward_apply(const NormPartition& partition, DType dtype, const NormGradient& gradient,
                                const float* coefficients, const NormInputGradient& d_in,
                                cudaStream_t stream) {
  if ((gradient.shortcut_in != nullptr) != (d_in.shortcut != nullptr))
    throw std::logic_error("a shortcut's norm has both an input and a gradient of it");
  if (d_in.adds && (gradient.scale_shift || gradient.second_d_out || gradient.shortcut_in))
    throw std::logic_error("a norm adds to a gradient what one plain d_out makes of it");
  with_access(partition, dtype, [&]<typename Of>(Of) {
    const auto launch = [&](auto source) {
      if constexpr (source.value == Source::two_d_outs_by_line)
        throw std::logic_error("only sums have two gradients that a norm's scale and shift mask");
      else
        gpu::launch(norm_backward_apply<Of, source.value>, pass_grid(partition), pass_block(partition), 0,
                    stream, gradient, coefficients, d_in, partition);
    };
    if (d_in.adds) return launch(std::integral_constant<Source, Source::d_out_into_sum>{});
    with_source_of(partition, gradient, launch);
  });
}

}  // namespace plumb::cuda
