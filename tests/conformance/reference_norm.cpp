// Batch norms, forward and backward.
#include <algorithm>

#include "tests/conformance/reference_loops.h"
#include "tests/conformance/reference_run.h"

namespace plumb {
namespace {

std::size_t pixels_per_channel(const Shape& extent) {
  return static_cast<std::size_t>(extent.n * extent.h * extent.w);
}

// Means of elements, of squared distances from the mean, and of magnitudes.
struct ChannelMoments {
  Doubles mean, variance, magnitude;
};
ChannelMoments moments_of(const Doubles& x, const Shape& extent) {
  const auto channels = static_cast<std::size_t>(extent.c);
  const auto elements = static_cast<double>(pixels_per_channel(extent));
  ChannelMoments moments{Doubles(channels), Doubles(channels), Doubles(channels)};
  for (std::size_t i = 0; i < x.size(); ++i) {
    moments.mean[channel_of(extent, i)] += x[i] / elements;
    moments.magnitude[channel_of(extent, i)] += std::abs(x[i]) / elements;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(extent, i);
    moments.variance[c] += (x[i] - moments.mean[c]) * (x[i] - moments.mean[c]) / elements;
  }
  return moments;
}

double slope_of(const Doubles& slopes, std::size_t channel) {
  return slopes[slopes.size() == 1 ? 0 : channel];
}

}  // namespace

std::vector<bool> Run::bits(BufferId mask, const Shape& extent) const {
  const Doubles& bytes = in(mask);
  std::vector<bool> passed(static_cast<std::size_t>(extent.elements()));
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const std::size_t place = on_gpu() ? nhwc_position(extent, i) : i;
    passed[i] = static_cast<unsigned>(bytes[place / 8]) >> place % 8 & 1U;
  }
  return passed;
}

Doubles Run::on_line(const Doubles& x, const Doubles& scale_shift, const Shape& extent) const {
  Doubles line(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(extent, i);
    line[i] = scale_shift[c] * x[i] + scale_shift[static_cast<std::size_t>(extent.c) + c];
  }
  return line;
}

Doubles Run::summed(BufferId first, const std::optional<Read>& second) const {
  Doubles sum = in(first);
  if (second)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += in(*second)[i];
  return sum;
}

// `square`: the biased variance. `noise`: its absolute error relative to fp32's rounding.
void Run::moments(const BatchNorm& op, const BatchNormMoments& at, const Doubles& mean, const Doubles& square,
                  const Doubles& noise) {
  const auto channels = mean.size();
  const auto elements = static_cast<double>(pixels_per_channel(shape(op.in)));
  const double unbiased = elements > 1 ? elements / (elements - 1) : 1;
  Expected means{mean, Doubles(channels)}, inverses{Doubles(channels), Doubles(channels)},
      running = means, running_squares = means, lines{Doubles(2 * channels), Doubles(2 * channels)};
  for (std::size_t c = 0; c < channels; ++c) {
    const double variance = square[c] + op.epsilon, error = kSumUnits * noise[c];
    means.slack[c] = running.slack[c] = kSumUnits * std::sqrt(noise[c]);
    inverses.values[c] = 1 / std::sqrt(variance);
    inverses.slack[c] = inverses.values[c] * (8 * 0x1p-24 + error / variance);
    running.values[c] = (1 - op.momentum) * in(at.running_mean)[c] + op.momentum * mean[c];
    running_squares.values[c] =
        (1 - op.momentum) * in(at.running_variance)[c] + op.momentum * unbiased * square[c];
    running_squares.slack[c] = 8 * 0x1p-24 * in(at.running_variance)[c] + unbiased * error;
    // From the moments as they were stored.
    const double factor = in(at.scale)[c] * made(at.inv_std)[c],
                 shift = (at.mean ? made(*at.mean) : mean)[c] * factor;
    lines.values[c] = factor;
    lines.values[channels + c] = in(at.bias)[c] - shift;
    lines.slack[c] = 4 * 0x1p-24 * std::abs(factor);
    lines.slack[channels + c] = 4 * 0x1p-24 * (std::abs(in(at.bias)[c]) + std::abs(shift));
  }
  if (at.mean) expect(*at.mean, std::move(means));
  expect(at.inv_std, std::move(inverses));
  expect(at.running_mean, std::move(running));
  expect(at.running_variance, std::move(running_squares));
  if (at.scale_shift.buffer != kNone) expect(at.scale_shift, std::move(lines));
}

void Run::of(const BatchNormStatistics& norm) {
  const BatchNorm& op = this->op<BatchNorm>();
  const ChannelMoments of = moments_of(in(norm.in), shape(op.in));
  Doubles noise(of.mean.size());
  for (std::size_t c = 0; c < noise.size(); ++c)
    noise[c] = of.variance[c] + 0x1p-20 * of.magnitude[c] * of.magnitude[c];
  moments(op, norm.moments, of.mean, of.variance, noise);
  for (std::size_t c = 0; c < noise.size(); ++c)  // a mean is as exact as what it is a mean of
    results_[*norm.moments.mean].slack[c] = results_[norm.moments.running_mean].slack[c] =
        kSumUnits * of.magnitude[c];
  unchanged(norm.counters);
}

void Run::of(const BatchNormFinalize& norm) {
  const BatchNorm& op = this->op<BatchNorm>();
  const auto elements = static_cast<double>(pixels_per_channel(shape(op.in)));
  const auto channels = static_cast<std::size_t>(shape(op.in).c);
  Doubles mean(channels), square(channels), noise(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    mean[c] = in(norm.sums)[c] / elements;
    noise[c] = in(norm.sums)[channels + c] / elements;
    square[c] = std::max(noise[c] - mean[c] * mean[c], 0.0);
  }
  moments(op, norm.moments, mean, square, noise);
}

void Run::of(const BatchNormForward& norm) {
  const BatchNorm& op = this->op<BatchNorm>();
  const Shape& extent = shape(op.in);
  const ChannelMoments of = moments_of(in(norm.in), extent);
  Doubles noise(of.mean.size());
  for (std::size_t c = 0; c < noise.size(); ++c)
    noise[c] = of.variance[c] + 0x1p-10 * of.magnitude[c] * of.magnitude[c];
  moments(op,
          {.scale = norm.scale,
           .bias = norm.bias,
           .running_mean = norm.running_mean,
           .running_variance = norm.running_variance,
           .scale_shift = kNone,
           .mean = norm.mean,
           .inv_std = norm.inv_std},
          of.mean, of.variance, noise);
  for (std::size_t c = 0; c < noise.size(); ++c)
    results_[norm.mean].slack[c] = results_[norm.running_mean].slack[c] = kSumUnits * of.magnitude[c];
  const Doubles &x = in(norm.in), &mean = made(norm.mean), &inv_std = made(norm.inv_std);
  Sums out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(extent, i);
    const double factor = in(norm.scale)[c] * inv_std[c];
    out.add(i, factor * x[i]);
    out.add(i, -factor * mean[c]);
    out.add(i, in(norm.bias)[c]);
    if (norm.residual) out.add(i, in(*norm.residual)[i]);
    double& y = out.values[i];
    if (op.activation == Activation::relu) y = std::max(y, 0.0);
    if (norm.slope && !(y > 0)) y *= slope_of(in(*norm.slope), c);
  }
  expect(norm.out, std::move(out).expected(8 * 0x1p-24));
}

void Run::of(const BatchNormApply& norm) {
  const BatchNorm& op = this->op<BatchNorm>();
  const Shape& extent = shape(op.in);
  if (norm.finalize) of(*norm.finalize);
  const Doubles &x = in(norm.in), &line = norm.finalize ? made(norm.line()) : in(norm.line());
  const auto channels = static_cast<std::size_t>(extent.c);
  Sums out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(extent, i);
    out.add(i, line[c] * x[i]);
    out.add(i, line[channels + c]);
    if (norm.residual_scale_shift) {
      out.add(i, in(*norm.residual_scale_shift)[c] * in(*norm.residual)[i]);
      out.add(i, in(*norm.residual_scale_shift)[channels + c]);
    } else if (norm.residual) {
      out.add(i, in(*norm.residual)[i]);
    }
    double& y = out.values[i];
    if (op.activation == Activation::relu && y <= 0) y = 0;  // a NaN passes
    if (norm.slope && !(y > 0)) y *= slope_of(in(*norm.slope), c);
  }
  if (norm.relu_mask) {
    Doubles bytes((x.size() + 7) / 8);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t place = on_gpu() ? nhwc_position(extent, i) : i;
      if (!(made(norm.out)[i] <= 0)) bytes[place / 8] += 1U << place % 8;
    }
    expect(*norm.relu_mask, {std::move(bytes)});
  }
  if (norm.out_sums) {
    Sums sums(channels);
    for (std::size_t i = 0; i < x.size(); ++i) sums.add(channel_of(extent, i), made(norm.out)[i]);
    expect(*norm.out_sums, std::move(sums).expected());
    unchanged(*norm.counters);
  }
  Expected expected = std::move(out).expected(4 * 0x1p-24);
  if (norm.out_sums)
    for (std::size_t i = 0; i < x.size(); ++i)
      expected.slack[i] += factor_roundoff(norm.out) * std::abs(expected.values[i]);
  expect(norm.out, std::move(expected));
}

// With y = (x - mean) * inv_std, m elements per channel and g the gradient of scale * y + bias: d scale = sum
// g * y, d bias = sum g, d x = scale * inv_std * (g - sum g / m - y * sum(g * y) / m).
void Run::norm_backward(const NormOperands& norm, const Shape& extent, const NormGradient& gradient) {
  const Doubles &x = in(norm.in), &mean = in(norm.mean), &inv_std = in(norm.inv_std), &scale = in(norm.scale);
  const Doubles& g = gradient.values;
  const auto channels = static_cast<std::size_t>(extent.c);
  const auto elements = static_cast<double>(pixels_per_channel(extent));
  const auto normal = [&](std::size_t i, std::size_t c) { return (x[i] - mean[c]) * inv_std[c]; };
  Sums d_scale(channels), d_bias(channels), d_in(x.size());
  Doubles rounding(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(extent, i);
    d_bias.add(c, g[i]);
    d_scale.add(c, g[i] * normal(i, c));
    d_scale.magnitudes[c] += std::abs(g[i]);  // the normal value's own error
    if (gradient.canceled.empty()) continue;
    d_bias.magnitudes[c] += gradient.canceled[i];
    d_scale.magnitudes[c] += gradient.canceled[i] * (1 + std::abs(normal(i, c)));
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(extent, i);
    const double factor = scale[c] * inv_std[c], far = std::abs(normal(i, c));
    d_in.add(i, factor * g[i]);
    d_in.add(i, -factor * d_bias.values[c] / elements);
    d_in.add(i, -factor * normal(i, c) * d_scale.values[c] / elements);
    d_in.magnitudes[i] += std::abs(factor) * (d_bias.magnitudes[c] + far * d_scale.magnitudes[c]) / elements;
    // d_in is c0 g + c1 x + c2 on a GPU: x and mean may be far from each other.
    d_in.magnitudes[i] +=
        std::abs(factor * inv_std[c] * d_scale.values[c]) / elements * (std::abs(x[i]) + std::abs(mean[c]));
    if (norm.adds) d_in.add(i, in(norm.d_in)[i]);
    rounding[i] = gradient.rounding * std::abs(factor * g[i]);
    if (!gradient.canceled.empty()) d_in.magnitudes[i] += std::abs(factor) * gradient.canceled[i];
  }
  Expected made_in = std::move(d_in).expected();
  for (std::size_t i = 0; i < rounding.size(); ++i) made_in.slack[i] += rounding[i];
  expect(norm.d_in, std::move(made_in));
  expect(norm.d_scale, std::move(d_scale).expected());
  expect(norm.d_bias, std::move(d_bias).expected());
}

void Run::of(const BatchNormBackward& norm) {
  const BatchNorm& op = this->op<BatchNorm>();
  const Shape& extent = shape(op.in);
  NormGradient gradient{summed(norm.d_out, norm.second_d_out)};
  Doubles& g = gradient.values;
  std::vector<bool> passed(g.size(), true);
  Doubles line, line_magnitudes;  // that decides, and of what it is the sum
  if (norm.relu_mask) {
    passed = bits(*norm.relu_mask, extent);
  } else if (norm.out) {
    for (std::size_t i = 0; i < g.size(); ++i) passed[i] = in(*norm.out)[i] > 0;
  } else if (norm.scale_shift) {
    line = on_line(in(norm.in), in(*norm.scale_shift), extent);
    for (std::size_t i = 0; i < line.size(); ++i)
      line_magnitudes.push_back(
          std::abs(line[i]) +
          2 * std::abs(in(*norm.scale_shift)[static_cast<std::size_t>(extent.c) + channel_of(extent, i)]));
  } else if (!on_gpu() && op.activation != Activation::none) {
    line = in(norm.in);
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::size_t c = channel_of(extent, i);
      line[i] = in(norm.scale)[c] * (line[i] - in(norm.mean)[c]) * in(norm.inv_std)[c] + in(norm.bias)[c];
      line_magnitudes.push_back(std::abs(line[i]) + 2 * std::abs(in(norm.bias)[c]) +
                                2 * std::abs(in(norm.scale)[c] * in(norm.mean)[c] * in(norm.inv_std)[c]));
    }
  }
  for (std::size_t i = 0; i < line.size(); ++i) passed[i] = line[i] > 0;
  if (norm.slope) {
    const Doubles& slopes = in(*norm.slope);
    Sums d_slope(slopes.size());
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (passed[i]) continue;
      const std::size_t c = channel_of(extent, i);
      d_slope.add(slopes.size() == 1 ? 0 : c, g[i] * line[i]);
      d_slope.magnitudes[slopes.size() == 1 ? 0 : c] += std::abs(g[i]) * line_magnitudes[i];
      g[i] *= slope_of(slopes, c);
    }
    expect(*norm.d_slope, std::move(d_slope).expected());
  } else {
    for (std::size_t i = 0; i < g.size(); ++i)
      if (!passed[i]) g[i] = 0;
  }
  if (norm.d_residual) {
    expect(*norm.d_residual, {g, Doubles(g.size(), 0x1p-22)});
    gradient.rounding = roundoff(*norm.d_residual);
  }
  if (norm.counters) unchanged(*norm.counters);
  norm_backward(
      {norm.in, norm.scale, norm.mean, norm.inv_std, norm.d_in, norm.d_scale, norm.d_bias, norm.d_in.adds},
      extent, gradient);
}

void Run::of(const BatchNormPairBackward& pair) {
  const Shape& extent = shape(op<BatchNorm>().in);
  NormGradient gradient{summed(pair.d_out, pair.second_d_out), roundoff(pair.d_out)};
  std::vector<bool> passed(gradient.values.size(), true);
  if (pair.relu_mask) passed = bits(*pair.relu_mask, extent);
  for (std::size_t i = 0; i < passed.size(); ++i)
    if (!passed[i]) gradient.values[i] = 0;
  for (const BatchNormPairBackward::Norm* norm : {&pair.norm, &pair.shortcut})
    norm_backward({norm->in, norm->scale, norm->mean, norm->inv_std, norm->d_in, norm->d_scale, norm->d_bias},
                  extent, gradient);
  unchanged(pair.counters);
}

// The pool behind: 3 x 3 windows at every second pixel, with a border of 1.
void Run::of(const BatchNormPoolBackward& norm) {
  const Shape& extent = shape(op<BatchNorm>().in);
  const Shape pooled{extent.n, (extent.h + 1) / 2, (extent.w + 1) / 2, extent.c};
  const Doubles d_out = summed(norm.d_out, norm.second_d_out);
  NormGradient gradient{.values = Doubles(in(norm.in).size()), .canceled = Doubles(in(norm.in).size())};
  for_each_element(pooled, [&](auto n, auto c, auto y, auto x) {
    const std::size_t window = at(pooled, n, c, y, x);
    const auto place = static_cast<std::int64_t>(in(norm.argmax)[window]);
    if (place >= 9) return;
    const std::size_t pixel = at(extent, n, c, 2 * y - 1 + place / 3, 2 * x - 1 + place % 3);
    gradient.values[pixel] += d_out[window];
    gradient.canceled[pixel] += std::abs(d_out[window]);
  });
  norm_backward({norm.in, norm.scale, norm.mean, norm.inv_std, norm.d_in, norm.d_scale, norm.d_bias}, extent,
                gradient);
  unchanged(norm.counters);
}

void Run::of(const BatchNormBackwardApply& norm) {
  const Shape& extent = shape(op<BatchNorm>().in);
  const auto channels = static_cast<std::size_t>(extent.c);
  const auto apply = [&](BufferId x, std::size_t first_row, BufferId into) {
    const Doubles& coefficients = in(norm.coefficients);
    Sums d_in(in(x).size());
    for (std::size_t i = 0; i < in(x).size(); ++i) {
      const double* row = &coefficients[first_row * channels + channel_of(extent, i)];
      d_in.add(i, row[0] * in(norm.d_activated)[i]);
      d_in.add(i, row[channels] * in(x)[i]);
      d_in.add(i, row[2 * channels]);
    }
    expect(into, std::move(d_in).expected(4 * 0x1p-24));
  };
  apply(norm.in, 0, norm.d_in);
  if (norm.shortcut_in) apply(*norm.shortcut_in, 3, *norm.d_shortcut_in);
}

}  // namespace plumb
