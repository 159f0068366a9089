// Backward: sums over g, the gradient of the activation's input, then the gradient of `in`. With
// y = (x - mean) / s, s = sqrt(variance + epsilon), m elements per channel: d bias = sum g, d scale = sum g
// y, d x = scale / s * (g - sum g / m - y * sum(g y) / m) (Ioffe and Szegedy 2015, arXiv:1502.03167). Reads
// four elements for each that it writes. A second output gradient adds two reads. A residual's gradient adds
// one write; the second pass then reads it instead of the output gradients.
#include "kernels/cpu/norm_lanes.h"
#include "kernels/cpu/norm_loops.h"

namespace plumb::cpu {
namespace {

// Source of the activation mask: none (all pass), the norm's output recomputed (relu, prelu) or stored.
enum class Passed { all, relu, relu_by_out, prelu };

struct Element {
  Lanes centered, passed;  // x - mean; g
  Lanes of_slope;          // contribution to the slope's gradient
};

template <Passed kPassed, typename T, typename Row>
Element element(const NormBackward<T>& at, const GroupFactors& by, std::int64_t offset, Row row) {
  Element result{.centered = row.read(at.in + offset) - by.mean, .passed = row.read(at.d_out + offset)};
  if (at.d_second) result.passed = result.passed + row.read(at.d_second + offset);
  if constexpr (kPassed == Passed::relu_by_out)
    result.passed = where_positive(row.read(at.out + offset), result.passed, Lanes{});
  if constexpr (kPassed == Passed::relu)
    result.passed = where_positive(result.centered * by.factor + by.bias, result.passed, Lanes{});
  if constexpr (kPassed == Passed::prelu) {
    const Lanes value = result.centered * by.factor + by.bias;
    result.of_slope = where_positive(value, Lanes{}, result.passed * value);
    result.passed = where_positive(value, result.passed, result.passed * by.slope);
  }
  return result;
}

template <Passed kPassed, typename T>
void gather_sums(const NormBackward<T>& at, std::int64_t group, std::int64_t slice) {
  const GroupFactors by = factors_of(at, group);
  LaneSums passed{}, centered{}, of_slope{};
  for_each_run(at.form.tiling, group, slice, [&](std::int64_t offset, std::int64_t rows, auto row) {
    while (rows > 0) {
      Lanes chunk_passed{}, chunk_centered{}, chunk_slope{};
      const std::int64_t chunk = std::min(kChunkRows, rows);
      for (std::int64_t r = 0; r < chunk; ++r, offset += at.form.tiling.row_stride) {
        const Element one = element<kPassed>(at, by, offset, row);
        chunk_passed = chunk_passed + one.passed;
        chunk_centered = chunk_centered + one.passed * one.centered;
        if constexpr (kPassed == Passed::prelu) chunk_slope = chunk_slope + one.of_slope;
        if (at.d_residual) row.write(at.d_residual + offset, one.passed);
      }
      add_to(passed, chunk_passed);
      add_to(centered, chunk_centered);
      if constexpr (kPassed == Passed::prelu) add_to(of_slope, chunk_slope);
      rows -= chunk;
    }
  });
  LaneSums* into = at.sums + kBackwardSums * (group * at.form.tiling.slices + slice);
  into[0] = passed;
  into[1] = centered;
  into[2] = of_slope;
}

// Combines a group's slices into the gradients of scale, bias and slope. Overwrites the first slice's sums
// with the per-lane means of g and of g (x - mean) / s^2.
template <typename T>
void finish_sums(const NormBackward<T>& at, std::int64_t group) {
  const NormTiling& tiling = at.form.tiling;
  LaneSums* parts = at.sums + kBackwardSums * group * tiling.slices;
  LaneSums mean_passed{}, mean_centered{};
  double of_slope = 0;
  for (int lane = 0; lane < tiling.period; ++lane) {
    const std::int64_t channel = tiling.channel(group, lane);
    if (channel < 0) break;
    const double passed = sum_of_channel(tiling, parts, kBackwardSums, lane);
    const double centered = sum_of_channel(tiling, parts + 1, kBackwardSums, lane);
    const double inverse = at.inv_std[channel];
    at.d_bias[channel] = static_cast<float>(passed);
    at.d_scale[channel] = static_cast<float>(centered * inverse);
    if (at.d_slope) {
      const double sum = sum_of_channel(tiling, parts + 2, kBackwardSums, lane);
      of_slope += sum;
      if (!at.form.one_slope) at.d_slope[channel] = static_cast<float>(sum);
    }
    for (int same = lane; same < kLanes; same += tiling.period) {
      mean_passed[static_cast<std::size_t>(same)] = passed / at.form.elements;
      mean_centered[static_cast<std::size_t>(same)] = centered * inverse * inverse / at.form.elements;
    }
  }
  parts[0] = mean_passed;
  parts[1] = mean_centered;
  parts[2][0] = of_slope;
}

Lanes rounded(const LaneSums& sums) {
  float values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane)
    values[lane] = static_cast<float>(sums[static_cast<std::size_t>(lane)]);
  return load(values);
}

template <Passed kPassed, typename T>
void apply(const NormBackward<T>& at, std::int64_t group, std::int64_t slice) {
  const GroupFactors by = factors_of(at, group);
  const LaneSums* means = at.sums + kBackwardSums * group * at.form.tiling.slices;
  const Lanes mean_passed = rounded(means[0]), mean_centered = rounded(means[1]);
  for_each_run(at.form.tiling, group, slice, [&](std::int64_t offset, std::int64_t rows, auto row) {
    for (std::int64_t r = 0; r < rows; ++r, offset += at.form.tiling.row_stride) {
      Lanes passed, centered;
      if (at.d_residual) {
        passed = row.read(at.d_residual + offset);
        centered = row.read(at.in + offset) - by.mean;
      } else {
        const Element one = element<kPassed>(at, by, offset, row);
        passed = one.passed;
        centered = one.centered;
      }
      row.write(at.d_in + offset, by.factor * (passed - mean_passed - centered * mean_centered));
    }
  });
}

template <Passed kPassed, typename T>
void run(const NormBackward<T>& at) {
  in_two_passes(
      at.form.tiling, at.form.order,
      [&](std::int64_t group, std::int64_t slice) { gather_sums<kPassed>(at, group, slice); },
      [&](std::int64_t group) { finish_sums(at, group); },
      [&](std::int64_t group, std::int64_t slice) { apply<kPassed>(at, group, slice); });
  if (!at.d_slope || !at.form.one_slope) return;
  double of_slope = 0;
  for (std::int64_t group = 0; group < at.form.tiling.groups; ++group)
    of_slope += at.sums[kBackwardSums * group * at.form.tiling.slices + 2][0];
  *at.d_slope = static_cast<float>(of_slope);
}

}  // namespace

template <typename T>
void norm_backward(const NormBackward<T>& at) {
  switch (at.form.activation) {
    case Activation::none:
      return run<Passed::all>(at);
    case Activation::relu:
      return at.out ? run<Passed::relu_by_out>(at) : run<Passed::relu>(at);
    case Activation::prelu:
      return run<Passed::prelu>(at);
  }
}
template void norm_backward(const NormBackward<float>&);
template void norm_backward(const NormBackward<Bf16>&);

}  // namespace plumb::cpu
