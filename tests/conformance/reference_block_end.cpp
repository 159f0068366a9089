// Ends of blocks without x (kernels/program/instructions/block_end.h has the algebra).
#include <algorithm>
#include <cmath>

#include "tests/conformance/reference_run.h"

namespace plumb {
namespace {

// The range of the largest factor in f16. Below it the subnormals' spacing of 2^-24 costs more than a
// rounding does.
constexpr double kLeastFactor = 0x1p-10, kLargestFactor = 65504;

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

double pixels_of(const Shape& extent) {
  return static_cast<double>(extent.n * extent.h * extent.w);
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return value > 0 && std::isfinite(value) && std::frexp(value, &exponent) == 0.5;
}

// A product of a library rounds what another one is added to.
double rounding_of(DType dtype, double value) {
  return unit_roundoff(dtype) * std::abs(value) + (dtype == DType::f16 ? 0x1p-25 : 0);  // subnormals
}

// The largest factor near 2^10.
double inverse_factor_scale(double largest) {
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::ldexp(1.0, exponent - 10);
}

}  // namespace

void Run::of(const SamplePixels& sample) {
  const Conv& op = this->op<Conv>();
  Shape to = shape(op.out);
  to.c = shape(op.in).c;
  Expected sampled{Doubles(size(to.elements())), Doubles(size(to.elements()))};
  Sums sums(size(to.c));
  for (std::size_t i = 0; i < sampled.values.size(); ++i) {
    const double value = sampled.values[i] = in(sample.in)[sampled_from(i, to.h, to.w, shape(op.in))];
    if (sample.out) sampled.slack[i] = factor_roundoff(*sample.out) * std::abs(value);
    sums.add(channel_of(to, i), sample.out ? made(*sample.out)[i] : value);
  }
  if (sample.out) expect(*sample.out, std::move(sampled));
  expect(sample.sums, std::move(sums).expected());
  unchanged(sample.counters);
}

void Run::of(const ChannelProducts& product) {
  const std::vector<std::int64_t>&left_dims = reference_.program_.buffers[product.left].dims,
        &right_dims = reference_.program_.buffers[product.right].dims;
  const Doubles &left = in(product.left), &right = in(product.right);
  const std::size_t images = size(left_dims[0]), rows = size(left_dims[1]), columns = size(right_dims[1]),
                    pixels = size(left_dims[2] * left_dims[3]);
  Sums products(rows * columns);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t image = 0; image < images; ++image)
      for (std::size_t j = 0; j < columns; ++j)
        for (std::size_t pixel = 0; pixel < pixels; ++pixel)
          products.add(i * columns + j, left[(image * rows + i) * pixels + pixel] *
                                            right[(image * columns + j) * pixels + pixel]);
  expect(product.products, std::move(products).expected(product_units(images * pixels)));
}

void Run::of(const ProductNormStatistics& norm) {
  const BatchNorm& op = this->op<BatchNorm>();
  const double elements = pixels_of(shape(op.in));
  const Doubles &gram = in(norm.products), &sums = in(norm.sums), &weight = in(norm.weight);
  const std::size_t outputs = size(shape(op.in).c), channels = sums.size();
  // Differences: their errors are relative to what is subtracted.
  Sums covariance(channels * channels), means(outputs), variances(outputs), deviations(outputs * channels);
  for (std::size_t i = 0; i < covariance.values.size(); ++i) {
    covariance.add(i, gram[i] / elements);
    covariance.add(i, -sums[i / channels] * sums[i % channels] / (elements * elements));
  }
  for (std::size_t k = 0; k < outputs; ++k) {
    const double* row = &weight[k * channels];
    for (std::size_t j = 0; j < channels; ++j) {
      means.add(k, row[j] * sums[j] / elements);
      for (std::size_t c = 0; c < channels; ++c) {
        deviations.values[k * channels + c] += row[j] * covariance.values[j * channels + c];
        deviations.magnitudes[k * channels + c] += std::abs(row[j]) * covariance.magnitudes[j * channels + c];
      }
    }
    for (std::size_t c = 0; c < channels; ++c) {
      variances.values[k] += row[c] * deviations.values[k * channels + c];
      variances.magnitudes[k] += std::abs(row[c]) * deviations.magnitudes[k * channels + c];
    }
    variances.values[k] = std::max(variances.values[k], 0.0);
  }
  moments(op, norm.moments, means.values, variances.values, variances.magnitudes);
  Expected mean = std::move(means).expected();  // as exact as what it is a mean of
  results_[norm.moments.running_mean].slack = std::move(mean.slack);
  Expected scaled{Doubles(weight.size()), Doubles(weight.size())}, transposed = scaled;
  Sums shift(outputs);
  for (std::size_t k = 0; k < outputs; ++k) shift.add(k, in(norm.moments.bias)[k]);
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const std::size_t k = i / channels, other = i % channels * outputs + k;
    shift.add(k, -made(norm.scaled)[i] * sums[i % channels] / elements);
    scaled.values[i] = transposed.values[other] =
        in(norm.moments.scale)[k] * made(norm.moments.inv_std)[k] * weight[i];
    scaled.slack[i] = transposed.slack[other] =
        (4 * 0x1p-24 + factor_roundoff(norm.scaled)) * std::abs(scaled.values[i]);
  }
  const Expected shifts = std::move(shift).expected();
  Expected& line = results_[norm.moments.scale_shift.buffer];
  std::ranges::copy(shifts.values, line.values.begin() + static_cast<std::ptrdiff_t>(outputs));
  std::ranges::copy(shifts.slack, line.slack.begin() + static_cast<std::ptrdiff_t>(outputs));
  expect(norm.scaled, std::move(scaled));
  expect(norm.scaled_transposed, std::move(transposed));
  expect(norm.deviations, std::move(deviations).expected());
}

void Run::of(const BlockEndForward& end) {
  const Conv& op = this->op<Conv>();
  const Shape &from = shape(op.in), &to = shape(op.out);
  const Doubles &a = in(end.in), &scaled = in(end.scaled_transposed), &line = in(end.scale_shift),
                *residual = in(end.residual), *residual_line = in(end.residual_scale_shift);
  const std::size_t channels = size(from.c), outputs = size(to.c), pixels = size(to.h * to.w);
  Sums out(size(to.elements()));
  const auto add_product = [&](std::size_t i, const Doubles& x, const Doubles& weight) {
    const std::size_t k = channel_of(to, i), image = i / (outputs * pixels), pixel = i % pixels,
                      inputs = weight.size() / outputs;
    for (std::size_t c = 0; c < inputs; ++c)
      out.add(i, x[(image * inputs + c) * pixels + pixel] * weight[c * outputs + k]);
  };
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const std::size_t k = channel_of(to, i);
    add_product(i, a, scaled);
    out.add(i, line[outputs + k]);
    if (residual) out.add(i, (*residual)[i] * (residual_line ? (*residual_line)[k] : 1));
    if (residual_line) out.add(i, (*residual_line)[outputs + k]);
    if (end.shortcut_in) add_product(i, in(*end.shortcut_in), in(*end.shortcut_scaled_transposed));
  }
  const std::size_t more = end.shortcut_in ? in(*end.shortcut_scaled_transposed).size() / outputs : 0;
  Sums shortcut(end.by_products && residual_line ? out.values.size() : 0);  // which is made first
  for (std::size_t i = 0; i < shortcut.values.size(); ++i) {
    const std::size_t k = channel_of(to, i);
    shortcut.add(i, out.values[i] - line[outputs + k]);
    for (std::size_t c = 0; c < channels; ++c)
      shortcut.add(
          i, -a[(i / (outputs * pixels) * channels + c) * pixels + i % pixels] * scaled[c * outputs + k]);
  }
  Expected expected = std::move(out).expected(product_units(channels + more));
  if (end.by_products)
    for (std::size_t i = 0; i < expected.slack.size(); ++i) {
      const std::size_t k = channel_of(to, i);
      expected.slack[i] += rounding_of(dtype(end.out), line[outputs + k]);
      if (residual_line)
        expected.slack[i] += rounding_of(dtype(end.out), shortcut.values[i]) +
                             rounding_of(dtype(end.out), (*residual_line)[outputs + k]);
    }
  Doubles bytes(made(end.relu_mask).size());
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    double& y = expected.values[i];
    const std::size_t place = on_gpu() ? nhwc_position(to, i) : i;
    bool passes = !(made(end.out)[i] <= 0);
    // An output that is 0 as stored may be more than 0 before it is rounded.
    if (!passes && y > -expected.slack[i] && y <= expected.slack[i] + 0x1p-24)
      passes = static_cast<unsigned>(made(end.relu_mask)[place / 8]) >> place % 8 & 1U;
    if (passes) bytes[place / 8] += 1U << place % 8;
    if (y <= 0) y = 0;  // a NaN passes
  }
  expect(end.relu_mask, {std::move(bytes)});
  expect(end.out, std::move(expected));
}

void Run::of(const MaskedGradient& gradient) {
  const Shape& extent = shape(op<BatchNorm>().out);
  Doubles sum = in(gradient.d_out);
  if (gradient.second_d_out) {
    const std::vector<std::int64_t>& dims = reference_.program_.buffers[*gradient.second_d_out].dims;
    for (std::size_t i = 0; i < in(*gradient.second_d_out).size(); ++i)
      sum[sampled_from(i, dims[2], dims[3], extent)] += in(*gradient.second_d_out)[i];
  }
  const std::vector<bool> passed = bits(gradient.relu_mask, extent);
  Expected d_in{sum, sum};
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (!passed[i]) d_in.values[i] = 0;
    d_in.slack[i] = factor_roundoff(gradient.d_in) * std::abs(d_in.values[i]);
  }
  Sums sums(size(extent.c));
  for (std::size_t i = 0; i < sum.size(); ++i) sums.add(channel_of(extent, i), made(gradient.d_in)[i]);
  expect(gradient.d_in, std::move(d_in));
  expect(gradient.sums, std::move(sums).expected());
  unchanged(gradient.counters);
}

void Run::of(const ProductNormBackward& norm) {
  const Conv& op = this->op<Conv>();
  const double elements = pixels_of(shape(op.out));
  const Doubles &products = in(norm.products), &gradient = in(norm.d_out_sums), &sums = in(norm.sums),
                &deviations = in(norm.deviations), &weight = in(norm.weight);
  const std::size_t outputs = gradient.size(), channels = sums.size();
  Sums d_weight(weight.size()), d_scale(outputs), shift(channels + 1), factors(channels * channels);
  for (std::size_t k = 0; k < outputs; ++k) {
    const double inv_std = in(norm.inv_std)[k], of_gradient = in(norm.scale)[k] * inv_std;
    // From the gradient as it was stored.
    const double of_x = -of_gradient * inv_std * made(norm.d_scale)[k] / elements;
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t i = k * channels + c;
      const double w = weight[i], by_means = gradient[k] * sums[c] / elements;
      d_scale.add(k, inv_std * w * products[i]);
      d_scale.add(k, -inv_std * w * by_means);
      d_weight.add(i, of_gradient * products[i]);
      d_weight.add(i, -of_gradient * by_means);
      d_weight.add(i, of_x * elements * deviations[i]);
      shift.add(c, -scaled_weight(norm.factors, w, of_gradient) * gradient[k] / elements);
      for (std::size_t j = 0; j < channels; ++j)
        factors.add(c * channels + j, w * of_x * weight[k * channels + j]);
    }
  }
  // The device chooses p.
  double largest = 0;
  for (const double factor : factors.values) largest = std::max(largest, std::abs(factor));
  const double chosen = made(norm.shift)[channels];
  const bool is_f16 = dtype(norm.factors) == DType::f16;
  const bool is_sound =
      is_power_of_two(chosen) &&
      (!is_f16 || largest == 0 || (largest <= kLargestFactor * chosen && largest >= kLeastFactor * chosen));
  const double inverse = is_sound ? chosen : inverse_factor_scale(largest);
  for (double& factor : factors.values) factor /= inverse;
  for (double& magnitude : factors.magnitudes) magnitude /= inverse;
  for (std::size_t i = 0; i < factors.values.size();
       ++i)  // by rows, which are the columns but for a rounding
    shift.add(i / channels, -inverse * made(norm.factors)[i] * sums[i % channels] / elements);
  shift.values[channels] = inverse;
  expect(norm.d_weight, std::move(d_weight).expected());
  expect(norm.d_scale, std::move(d_scale).expected());
  if (norm.d_bias) expect(*norm.d_bias, {gradient});
  Expected rounded_factors = std::move(factors).expected();
  for (std::size_t i = 0; i < rounded_factors.values.size(); ++i)
    rounded_factors.slack[i] += factor_roundoff(norm.factors) * std::abs(rounded_factors.values[i]);
  expect(norm.factors, std::move(rounded_factors));
  const Doubles magnitudes = shift.magnitudes;
  Expected shifts = std::move(shift).expected();
  for (std::size_t i = 0; i < magnitudes.size(); ++i)
    shifts.slack[i] += factor_roundoff(norm.factors) * magnitudes[i];
  expect(norm.shift, std::move(shifts));
}

void Run::of(const BlockEndBackwardData& end) {
  const Conv& op = this->op<Conv>();
  const Shape& to = shape(op.out);
  Shape extent = to;
  extent.c = shape(op.in).c;
  const Doubles &g = in(end.d_out), &a = in(end.in), &scaled = in(end.scaled), &factors = in(end.factors),
                &shift = in(end.shift), *x = in(end.norm_in), *line = in(end.scale_shift);
  const std::size_t channels = size(extent.c), outputs = size(to.c), pixels = size(to.h * to.w);
  const auto passes = [&](std::size_t i, std::size_t c) {
    const double of_x = (*line)[c] * (*x)[i], of_ones = (*line)[channels + c];
    // f32 may round a difference to 0 that isn't.
    const bool is_near = std::abs(of_x + of_ones) <= 0x1p-23 * std::abs(of_ones);
    return is_near ? made(end.d_in)[i] != 0 : of_x + of_ones > 0;
  };
  Sums gradient(size(extent.elements()));
  Doubles of_input(gradient.values.size());
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < gradient.values.size(); ++i) {
    const std::size_t c = channel_of(extent, i), image = i / (channels * pixels), pixel = i % pixels;
    if (x && !passes(i, c)) continue;
    for (std::size_t k = 0; k < outputs; ++k)
      gradient.add(i, g[(image * outputs + k) * pixels + pixel] * scaled[k * channels + c]);
    for (std::size_t j = 0; j < channels; ++j) {
      const double term =
          shift[channels] * a[(image * channels + j) * pixels + pixel] * factors[j * channels + c];
      gradient.add(i, term);
      of_input[i] += term;
    }
    gradient.add(i, shift[c]);
    of_input[i] += shift[c];
  }
  if (x) {
    Expected coefficients{Doubles(3 * channels), Doubles(3 * channels)};
    sums_for({*end.norm_in, *end.mean, *end.inv_std, *end.scale, *end.d_scale, *end.d_bias}, made(end.d_in),
             extent, &coefficients, 0);
    expect(*end.coefficients, std::move(coefficients));
  }
  Expected expected = std::move(gradient).expected(product_units(channels + outputs));
  if (end.by_products)
    for (std::size_t i = 0; i < of_input.size(); ++i)
      expected.slack[i] += rounding_of(dtype(end.d_in), of_input[i]) +
                           rounding_of(dtype(end.d_in), shift[channel_of(extent, i)]);
  expect(end.d_in, std::move(expected));
}

}  // namespace plumb
