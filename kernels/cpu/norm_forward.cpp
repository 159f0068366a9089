// Forward: one pass over `in` for mean and variance, a second that normalizes, adds the residual and applies
// the activation. Reads each element twice, writes it once; a residual adds one read. For small groups the
// second read hits the cache.
#include <cmath>

#include "kernels/cpu/norm_lanes.h"
#include "kernels/cpu/norm_loops.h"

namespace plumb::cpu {
namespace {

// Per lane: sum of elements and sum of their squares.
struct Moments {
  LaneSums sum, squares;
};

// Sums around the mean of a chunk of rows, whose elements are still in the L1 cache, then shifts them to 0 in
// double: avoids cancellation if the mean is large compared with the standard deviation.
template <typename T, typename Row>
void add_chunk(Moments& moments, const T* from, std::int64_t stride, std::int64_t rows, Row row) {
  Lanes even{}, odd{};
  std::int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    even = even + row.read(from + r * stride);
    odd = odd + row.read(from + (r + 1) * stride);
  }
  if (r < rows) even = even + row.read(from + r * stride);
  const Lanes sum = even + odd;
  const float inverse = 1 / static_cast<float>(rows);
  const Lanes mean = sum * inverse;
  even = odd = Lanes{};
  Lanes even_squares{}, odd_squares{};
  const auto add = [&](std::int64_t at, Lanes& distances, Lanes& squares) {
    const Lanes distance = row.read(from + at * stride) - mean;
    distances = distances + distance;
    squares = squares + distance * distance;
  };
  for (r = 0; r + 2 <= rows; r += 2) {
    add(r, even, even_squares);
    add(r + 1, odd, odd_squares);
  }
  if (r < rows) add(r, even, even_squares);
  float means[kLanes], distances[kLanes], squares[kLanes];
  store(means, mean);
  store(distances, even + odd);
  store(squares, even_squares + odd_squares);
#pragma omp simd
  for (int lane = 0; lane < kLanes; ++lane) {
    const double m = means[lane], d = distances[lane], all = static_cast<double>(rows) * m;
    moments.sum[static_cast<std::size_t>(lane)] += all + d;
    moments.squares[static_cast<std::size_t>(lane)] += squares[lane] + m * (2 * d + all);
  }
}

template <typename T>
void gather_moments(const NormForward<T>& at, std::int64_t group, std::int64_t slice) {
  Moments moments{};
  const std::int64_t stride = at.form.tiling.row_stride;
  for_each_run(at.form.tiling, group, slice, [&](std::int64_t offset, std::int64_t rows, auto row) {
    for (std::int64_t first = 0; first < rows; first += kChunkRows)
      add_chunk(moments, at.in + offset + first * stride, stride, std::min(kChunkRows, rows - first), row);
  });
  LaneSums* into = at.sums + kForwardSums * (group * at.form.tiling.slices + slice);
  into[0] = moments.sum;
  into[1] = moments.squares;
}

// running = (1 - momentum) * running + momentum * batch. The running variance is unbiased, n / (n - 1), for
// n > 1 elements per channel (PyTorch, aten/src/ATen/native/Normalization.cpp); n = 1 keeps the biased one.
template <typename T>
void finish_statistics(const NormForward<T>& at, std::int64_t group) {
  const LaneSums* parts = at.sums + kForwardSums * group * at.form.tiling.slices;
  const double unbiased = at.form.elements > 1 ? at.form.elements / (at.form.elements - 1) : 1;
  const auto follow = [&](float& running, double batch) {
    running = static_cast<float>((1 - at.momentum) * static_cast<double>(running) + at.momentum * batch);
  };
  for (int lane = 0; lane < at.form.tiling.period; ++lane) {
    const std::int64_t channel = at.form.tiling.channel(group, lane);
    if (channel < 0) break;
    const double mean = sum_of_channel(at.form.tiling, parts, kForwardSums, lane) / at.form.elements;
    const double squares = sum_of_channel(at.form.tiling, parts + 1, kForwardSums, lane) / at.form.elements;
    const double variance = std::max(0.0, squares - mean * mean);
    at.mean[channel] = static_cast<float>(mean);
    at.inv_std[channel] = static_cast<float>(1 / std::sqrt(variance + at.epsilon));
    follow(at.running_mean[channel], mean);
    follow(at.running_variance[channel], unbiased * variance);
  }
}

template <Activation kActivation>
Lanes activated(Lanes value, Lanes slope) {
  if constexpr (kActivation == Activation::relu) return where_positive(value, value, Lanes{});
  if constexpr (kActivation == Activation::prelu) return where_positive(value, value, slope * value);
  return value;
}

template <Activation kActivation, bool kResidual, typename T>
void apply(const NormForward<T>& at, std::int64_t group, std::int64_t slice) {
  const GroupFactors by = factors_of(at, group);
  for_each_run(at.form.tiling, group, slice, [&](std::int64_t offset, std::int64_t rows, auto row) {
    for (std::int64_t r = 0; r < rows; ++r, offset += at.form.tiling.row_stride) {
      Lanes value = (row.read(at.in + offset) - by.mean) * by.factor + by.bias;
      if constexpr (kResidual) value = value + row.read(at.residual + offset);
      row.write(at.out + offset, activated<kActivation>(value, by.slope));
    }
  });
}

template <Activation kActivation, bool kResidual, typename T>
void run(const NormForward<T>& at) {
  in_two_passes(
      at.form.tiling, at.form.order,
      [&](std::int64_t group, std::int64_t slice) { gather_moments(at, group, slice); },
      [&](std::int64_t group) { finish_statistics(at, group); },
      [&](std::int64_t group, std::int64_t slice) { apply<kActivation, kResidual>(at, group, slice); });
}

}  // namespace

template <typename T>
void norm_forward(const NormForward<T>& at) {
  switch (at.form.activation) {
    case Activation::none:
      return at.residual ? run<Activation::none, true>(at) : run<Activation::none, false>(at);
    case Activation::relu:
      return at.residual ? run<Activation::relu, true>(at) : run<Activation::relu, false>(at);
    case Activation::prelu:
      return run<Activation::prelu, false>(at);
  }
}
template void norm_forward(const NormForward<float>&);
template void norm_forward(const NormForward<Bf16>&);

}  // namespace plumb::cpu
