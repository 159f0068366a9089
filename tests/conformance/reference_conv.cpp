// Convolutions, alone and with what a GPU's engines fuse to them.
#include <algorithm>

#include "kernels/program/winograd.h"
#include "tests/conformance/reference_loops.h"
#include "tests/conformance/reference_run.h"

namespace plumb {

double Run::product_units(std::size_t products) const {
  const bool multiplies_halves = std::ranges::any_of(instruction_.uses(), [&](const BufferUse& use) {
    return dtype(use.buffer) == DType::f16 || dtype(use.buffer) == DType::bf16;
  });
  double units = kSumUnits;
  if (reference_.program_.allow_tf32) units += kTf32Units;
  if (multiplies_halves)  // oneDNN multiplies bf16 in its own ways
    units += on_gpu() ? kChoppedUnits * static_cast<double>(products) : unit_roundoff(DType::bf16);
  return units;
}

// Winograd's algorithm spreads the roundings of a tile over all of it.
Expected Run::of_convolution(Sums&& sums, std::size_t products, double more_units) const {
  if (instruction_.engine != kWinograd) return std::move(sums).expected(product_units(products) + more_units);
  std::ranges::fill(sums.magnitudes, *std::ranges::max_element(sums.magnitudes));
  return std::move(sums).expected(kWinogradUnits + product_units(products) - kSumUnits);
}

Doubles Run::convolved_input(BufferId from, std::optional<Read> scale_shift) const {
  if (!scale_shift) return in(from);
  const Shape& extent = shape(op<Conv>().in);
  Doubles x = on_line(in(from), in(*scale_shift), extent);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = rounded(dtype(from), std::max(x[i], 0.0));
  return x;
}

void Run::of(const ConvForward& conv) {
  const Conv& op = this->op<Conv>();
  const Shape& to = shape(op.out);
  const Doubles x = convolved_input(conv.in, conv.scale_shift), &weight = in(conv.weight);
  Sums out(static_cast<std::size_t>(to.elements()));
  for_each_product<Split::outputs>(op, shape(op.in), to, [&](std::size_t i, std::size_t w, std::size_t o) {
    out.add(o, x[i] * weight[w]);
  });
  // An input normalized on the way is rounded; now and then fp32 and double round it to different neighbors.
  const double more_units = conv.scale_shift ? roundoff(conv.in) : 0;
  if (conv.sums) {
    const auto channels = static_cast<std::size_t>(to.c);
    Sums sums(2 * channels);
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      sums.add(channel_of(to, i), out.values[i]);
      sums.add(channels + channel_of(to, i), out.values[i] * out.values[i]);
    }
    expect(*conv.sums,
           std::move(sums).expected(4 * roundoff(conv.out) + kSumUnits +
                                    more_units));  // of the output, rounded or not
  }
  expect(conv.out,
         of_convolution(std::move(out), weight.size() / static_cast<std::size_t>(to.c), more_units));
}

// Most products in the gradient of one element.
std::size_t Run::products_of_input() const {
  const Conv& op = this->op<Conv>();
  return static_cast<std::size_t>(shape(op.out).c / op.groups * op.kernel * op.kernel);
}

Sums Run::backward_data(BufferId d_out, BufferId weight_buffer) {
  const Conv& op = this->op<Conv>();
  const Doubles &gradient = in(d_out), &weight = in(weight_buffer);
  Sums d_in(static_cast<std::size_t>(shape(op.in).elements()));
  for_each_product<Split::inputs>(
      op, shape(op.in), shape(op.out),
      [&](std::size_t i, std::size_t w, std::size_t o) { d_in.add(i, gradient[o] * weight[w]); });
  return d_in;
}

Expected Run::summed_gradient(const Doubles& gradient, const Shape& extent, DType stored) {
  Sums sums(static_cast<std::size_t>(extent.c));
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    sums.add(channel_of(extent, i), gradient[i]);
    if (stored == DType::f16) sums.magnitudes[channel_of(extent, i)] += 0x1p-14;  // f16 ends there
  }
  return std::move(sums).expected(kSumUnits + unit_roundoff(stored));
}

void Run::sums_for(const SummedNorm& norm, const Doubles& gradient, const Shape& extent,
                   Expected* coefficients, std::size_t first_row) {
  const Doubles &x = in(norm.in), &mean = in(norm.mean), &inv_std = in(norm.inv_std), &scale = in(norm.scale);
  const auto channels = static_cast<std::size_t>(extent.c);
  const double elements = static_cast<double>(extent.elements()) / static_cast<double>(extent.c);
  Sums d_scale(channels);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(extent, i);
    const double normal = (x[i] - mean[c]) * inv_std[c];
    d_scale.add(c, gradient[i] * normal);
    if (dtype(norm.in) == DType::f16) d_scale.magnitudes[c] += 0x1p-14 * std::abs(normal);
  }
  if (coefficients != nullptr) {
    const Doubles &sum_of_products = made(norm.d_scale), &sum = made(norm.d_bias);
    for (std::size_t c = 0; c < channels; ++c) {
      const double of_gradient = scale[c] * inv_std[c],
                   of_x = -of_gradient * inv_std[c] * sum_of_products[c] / elements;
      const double by_sum = of_gradient * sum[c] / elements;
      const double rows[]{of_gradient, of_x, -by_sum - of_x * mean[c]};
      const double magnitudes[]{of_gradient, of_x, std::abs(by_sum) + std::abs(of_x * mean[c])};
      for (std::size_t row = 0; row < 3; ++row) {
        coefficients->values[(first_row + row) * channels + c] = rows[row];
        coefficients->slack[(first_row + row) * channels + c] = 8 * 0x1p-24 * std::abs(magnitudes[row]);
      }
    }
  }
  // Fused engines sum the gradient before it is rounded, our own kernels behind.
  expect(norm.d_scale, std::move(d_scale).expected(kSumUnits + unit_roundoff(dtype(norm.in))));
  expect(norm.d_bias, summed_gradient(gradient, extent, dtype(norm.in)));
}

void Run::of(const ConvBackwardData& conv) {
  const Shape& extent = shape(op<Conv>().in);
  Sums d_in = backward_data(conv.d_out, conv.weight);
  if (const Doubles* added = in(conv.added)) {
    const std::vector<std::int64_t>& dims = reference_.program_.buffers[conv.added->buffer].dims;
    for (std::size_t i = 0; i < added->size(); ++i)
      d_in.add(sampled_from(i, dims[2], dims[3], extent), (*added)[i]);
  }
  if (conv.relu_mask) {
    const std::vector<bool> passed = bits(*conv.relu_mask, extent);
    for (std::size_t i = 0; i < passed.size(); ++i)
      if (!passed[i]) d_in.values[i] = d_in.magnitudes[i] = 0;
  }
  if (conv.norm_in) {
    const auto channels = static_cast<std::size_t>(extent.c);
    const std::size_t rows = conv.shortcut_in ? 6 : 3;
    Expected coefficients{Doubles(rows * channels), Doubles(rows * channels)};
    sums_for({*conv.norm_in, *conv.mean, *conv.inv_std, *conv.scale, *conv.d_scale, *conv.d_bias},
             made(conv.d_in), extent, &coefficients, 0);
    if (conv.shortcut_in)
      sums_for({*conv.shortcut_in, *conv.shortcut_mean, *conv.shortcut_inv_std, *conv.shortcut_scale,
                *conv.d_shortcut_scale, *conv.d_shortcut_bias},
               made(conv.d_in), extent, &coefficients, 3);
    expect(*conv.coefficients, std::move(coefficients));
  } else if (conv.d_bias) {
    expect(*conv.d_bias, summed_gradient(made(conv.d_in), extent, dtype(conv.d_in)));
  }
  expect(conv.d_in, of_convolution(std::move(d_in), products_of_input()));
}

void Run::of(const ConvBackwardWeights& conv) {
  const Conv& op = this->op<Conv>();
  const Doubles x = convolved_input(conv.in, conv.scale_shift), &gradient = in(conv.d_out);
  Sums d_weight(static_cast<std::size_t>(reference_.graph_.parameters[op.weight].elements()));
  for_each_product<Split::weights>(
      op, shape(op.in), shape(op.out),
      [&](std::size_t i, std::size_t w, std::size_t o) { d_weight.add(w, gradient[o] * x[i]); });
  const Shape& to = shape(op.out);
  expect(conv.d_weight, of_convolution(std::move(d_weight), static_cast<std::size_t>(to.n * to.h * to.w),
                                       conv.scale_shift ? roundoff(conv.in) : 0));
}

void Run::of(const ConvNormBackwardData& conv) {
  const Shape& extent = shape(op<Conv>().in);
  Sums gradient = backward_data(conv.d_out, conv.weight);
  const Doubles &x = in(conv.norm_in), &mean = in(conv.mean), &inv_std = in(conv.inv_std);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(extent, i);
    if (in(conv.scale)[c] * (x[i] - mean[c]) * inv_std[c] + in(conv.bias)[c] > 0) continue;
    gradient.values[i] = gradient.magnitudes[i] = 0;
  }
  const auto channels = static_cast<std::size_t>(extent.c);
  Expected coefficients{Doubles(3 * channels), Doubles(3 * channels)};
  sums_for({conv.norm_in, conv.mean, conv.inv_std, conv.scale, conv.d_scale, conv.d_bias},
           made(conv.d_activated), extent, &coefficients, 0);
  expect(conv.coefficients, std::move(coefficients));
  expect(conv.d_activated, std::move(gradient).expected(product_units(products_of_input())));
}

}  // namespace plumb
