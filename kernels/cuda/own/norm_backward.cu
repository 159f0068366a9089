#include <stdexcept>

#include "kernels/cuda/own/norm.h"
#include "kernels/cuda/own/norm_tile.h"
#include "kernels/cuda/own/reduce.h"

namespace plumb::cuda {
namespace {

// How a kernel finds the gradient: from one d_out, masked by bits, unless it says otherwise.
struct OneGradient {
  static constexpr bool kTwo = false;      // adds second_d_out
  static constexpr bool kByLine = false;   // masked where scale * in + shift is not positive
  static constexpr bool kPrelu = false;    // … or through a slope there, whose gradient is a third sum
  static constexpr bool kIntoSum = false;  // adds to d_in
  static constexpr bool kPair = false;  // of a shortcut's norm, too, which has a third sum; two d_outs or one
};
struct TwoGradients : OneGradient {
  static constexpr bool kTwo = true;
};
struct MaskedByLine : OneGradient {
  static constexpr bool kByLine = true;
};
struct TwoMaskedByLine : TwoGradients {
  static constexpr bool kByLine = true;
};
struct ThroughPrelu : MaskedByLine {
  static constexpr bool kPrelu = true;
};
struct IntoSum : OneGradient {
  static constexpr bool kIntoSum = true;
};
struct OfPair : OneGradient {
  static constexpr bool kPair = true;
};

template <typename Source>
inline constexpr bool kHasThirdSum = Source::kPrelu || Source::kPair;
// Blocks per multiprocessor. Two where a PReLU's line, or a shortcut's sums and coefficients, need more
// registers: 32 KiB in flight per multiprocessor suffice.
template <typename Source>
inline constexpr int kBlocks = kHasThirdSum<Source> ? 2 : kBlocksAtOnce;

// Sums of the gradient, of its product with (in - mean), and of the slope's gradient or of the product with
// (shortcut_in - its mean).
template <typename Source>
using GradientSums = NormSums<kHasThirdSum<Source> ? kMostNormSums : kNormSums>;

// Passes where scale * in + shift > 0 or NaN, else through a PReLU's slope.
template <int kChannels>
struct InputLine {
  float scale[kChannels], shift[kChannels], slope[kChannels];
  __device__ float at(int channel, float in) const { return scale[channel] * in + shift[channel]; }
};
template <typename Source, int kChannels>
__device__ void load_line(const NormGradient& from, int channels, int channel, InputLine<kChannels>& into) {
  if constexpr (Source::kByLine) {
    load_floats(from.scale_shift, from.scale_shift_dtype, channel, into.scale);
    load_floats(from.scale_shift, from.scale_shift_dtype, std::int64_t{channels} + channel, into.shift);
  }
  if constexpr (Source::kPrelu) load_slopes(from.slope, channel, into.slope);
}

// A thread's loads for one step, as stored.
template <typename T, typename Source>
struct Loaded {
  Group<T> in, d_out, second_d_out, shortcut_in;
  unsigned passed = 0xff;  // mask bits

  __device__ void gradient(const NormGradient& from, const InputLine<kNormGroup>& line,
                           float (&values)[kNormGroup]) const {
#pragma unroll
    for (int j = 0; j < kNormGroup; ++j) values[j] = d_out.at(j);
    if (Source::kTwo || (Source::kPair && from.second_d_out)) {
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) values[j] += second_d_out.at(j);
    }
    if constexpr (Source::kByLine) {
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) {
        const float held_back = Source::kPrelu ? line.slope[j] * values[j] : 0;
        values[j] = line.at(j, in.at(j)) <= 0 ? held_back : values[j];
      }
      return;
    }
#pragma unroll
    for (int j = 0; j < kNormGroup; ++j) values[j] = (passed >> j & 1U) != 0 ? values[j] : 0;
  }
};

template <typename T, typename Source>
__device__ void load_step(const NormGradient& from, std::int64_t at, Loaded<T, Source>& into) {
  into.in = load_packed<kNormGroup>(as<T>(from.in) + at);
  into.d_out = load_packed<kNormGroup>(as<T>(from.d_out) + at);
  if constexpr (Source::kPair) into.shortcut_in = load_packed<kNormGroup>(as<T>(from.shortcut_in) + at);
  if (Source::kTwo || (Source::kPair && from.second_d_out))
    into.second_d_out = load_packed<kNormGroup>(as<T>(from.second_d_out) + at);
  if constexpr (Source::kByLine) return;
  if (from.mask) into.passed = from.mask[at / kNormGroup];
}

// The last tile to be settled adds up the slopes' gradients of all channels, with one warp.
__device__ void sum_slopes(const NormBackward& into, const NormPartition& partition,
                           const NormScratch& scratch) {
  if (!is_last_block(scratch.counters + norm_counters(partition) - 1, partition.tiles)) return;
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  if (thread >= 32) return;
  constexpr int kAtOnce = 4;
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
// of mask, 2 more for a second d_out or for a shortcut, and writes 2 for a residual's gradient; twice that in
// f32. Bound by memory. The last block of a tile settles its channels, some 5 us after the last read.
template <typename T, typename Source>
__global__ void __launch_bounds__(kNormThreads, kBlocks<Source>)
    norm_backward_sums(NormGradient from, std::byte* d_residual, NormScratch scratch, NormPartition partition,
                       NormBackward into, NormBackward shortcut) {
  const Place place = place_of(partition, blockIdx);
  float center[kNormGroup] = {}, shortcut_center[kNormGroup] = {};
  if (place.steps > 0) load(into.mean + place.channel, center);
  if (Source::kPair && place.steps > 0) load(shortcut.mean + place.channel, shortcut_center);
  InputLine<kNormGroup> line = {};
  if (place.steps > 0) load_line<Source>(from, partition.channels, place.channel, line);
  GradientSums<Source> own;
  for_steps<kAtOnceOfSeveral<T>>(place, [&](auto at_once, std::int64_t at) {
    Loaded<T, Source> loaded[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) load_step(from, at + u * place.stride, loaded[u]);
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      float gradient[kNormGroup];
      loaded[u].gradient(from, line, gradient);
      if (!Source::kByLine && d_residual) store(as<T>(d_residual) + at + u * place.stride, gradient);
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) {
        const float in = loaded[u].in.at(j);
        own.of[0][j] += gradient[j];
        own.of[1][j] += gradient[j] * (in - center[j]);
        if constexpr (Source::kPrelu) {
          const float y = line.at(j, in);
          own.of[2][j] += y <= 0 ? loaded[u].d_out.at(j) * y : 0;
        }
        if constexpr (Source::kPair)
          own.of[2][j] += gradient[j] * (loaded[u].shortcut_in.at(j) - shortcut_center[j]);
      }
    }
  });
  if (!combine_blocks(own, partition, scratch)) return;
  float totals[GradientSums<Source>::kSums];
  const int channel = spread_channels(own, partition, totals);
  if (channel >= 0) {
    const std::int64_t count = partition.elements_per_channel;
    settle(into, channel, partition.channels, totals[0], totals[1], count);
    if constexpr (Source::kPair) settle(shortcut, channel, partition.channels, totals[0], totals[2], count);
    if constexpr (Source::kPrelu) into.d_slope[channel] = totals[2];
  }
  if constexpr (Source::kPrelu) {
    if (into.d_shared_slope) sum_slopes(into, partition, scratch);
  }
}

// A block computes d_in for its part of the tensor, last steps first; a thread keeps the coefficients of its
// channels in registers. Per element in a half type: reads 4 bytes, 1/8 of mask and 2 for a second d_out
// (with a residual, its gradient instead of these three) or for the sum to add to, writes 2; 4 more with a
// shortcut; twice that in f32. Bound by memory.
template <typename T, typename Source>
__global__ void __launch_bounds__(kNormThreads, kBlocks<Source>)
    norm_backward_apply(NormGradient from, const float* coefficients, NormInputGradient into,
                        NormPartition partition) {
  const Place place = reversed_place_of<false>(partition);
  if (place.steps == 0) return;
  const std::int64_t channels = partition.channels;
  Coefficients<kNormGroup> own, of_shortcut;
  own.load(coefficients, channels, place.channel);
  if constexpr (Source::kPair) of_shortcut.load(coefficients + 3 * channels, channels, place.channel);
  InputLine<kNormGroup> line = {};
  load_line<Source>(from, partition.channels, place.channel, line);
  for_steps<kAtOnceOfSeveral<T>>(place, [&](auto at_once, std::int64_t at) {
    Loaded<T, Source> loaded[at_once.value];
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) load_step(from, at + u * place.stride, loaded[u]);
    if constexpr (Source::kIntoSum) {
#pragma unroll
      for (int u = 0; u < at_once.value; ++u)
        loaded[u].second_d_out = load_packed<kNormGroup>(as<T>(into.data) + at + u * place.stride);
    }
#pragma unroll
    for (int u = 0; u < at_once.value; ++u) {
      float gradient[kNormGroup], d_in[kNormGroup];
      loaded[u].gradient(from, line, gradient);
#pragma unroll
      for (int j = 0; j < kNormGroup; ++j) {
        d_in[j] = own.d_in(j, gradient[j], loaded[u].in.at(j));
        if constexpr (Source::kIntoSum) d_in[j] += loaded[u].second_d_out.at(j);
      }
      store(as<T>(into.data) + at + u * place.stride, d_in);
      if constexpr (Source::kPair) {
#pragma unroll
        for (int j = 0; j < kNormGroup; ++j)
          d_in[j] = of_shortcut.d_in(j, gradient[j], loaded[u].shortcut_in.at(j));
        store(as<T>(into.shortcut) + at + u * place.stride, d_in);
      }
    }
  });
}

// Calls `use` with a Source.
template <typename Use>
void with_source_of(const NormGradient& gradient, Use&& use) {
  if (gradient.slope.data) return use(ThroughPrelu{});
  if (gradient.scale_shift && gradient.second_d_out) return use(TwoMaskedByLine{});
  if (gradient.scale_shift) return use(MaskedByLine{});
  if (gradient.shortcut_in) return use(OfPair{});
  if (gradient.second_d_out) return use(TwoGradients{});
  use(OneGradient{});
}

}  // namespace

void launch_norm_backward_sums(const NormPartition& partition, DType dtype, const NormGradient& gradient,
                               std::byte* d_residual, const NormScratch& scratch, const NormBackward& into,
                               const NormBackward& shortcut, cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    with_source_of(gradient, [&]<typename Source>(Source) {
      const dim3 block = pass_block(partition);
      gpu::launch(norm_backward_sums<T, Source>, pass_grid(partition), block,
                  merge_bytes<GradientSums<Source>>(block), stream, gradient, d_residual, scratch, partition,
                  into, shortcut);
    });
  });
}

void launch_norm_backward_apply(const NormPartition& partition, DType dtype, const NormGradient& gradient,
                                const float* coefficients, const NormInputGradient& d_in,
                                cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    const auto launch = [&]<typename Source>(Source) {
      if constexpr (Source::kTwo && Source::kByLine)
        throw std::logic_error("only sums have two gradients that a norm's scale and shift mask");
      else
        gpu::launch(norm_backward_apply<T, Source>, pass_grid(partition), pass_block(partition), 0, stream,
                    gradient, coefficients, d_in, partition);
    };
    if (d_in.adds) return launch(IntoSum{});
    with_source_of(gradient, launch);
  });
}

}  // namespace plumb::cuda
