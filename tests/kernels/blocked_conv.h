// For tests of convolution loops in oneDNN's blocked layouts: memory, places and sums in double precision.
#pragma once

#include <cmath>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <random>
#include <string>

#include "base/text.h"
#include "kernels/cpu/element_types.h"
#include "kernels/program/conv_shape.h"

namespace plumb {

template <typename T>
using Aligned = std::unique_ptr<T[], decltype(&std::free)>;

template <typename T>
Aligned<T> aligned(std::int64_t count) {
  const auto bytes = (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
  return {static_cast<T*>(std::aligned_alloc(64, bytes)), &std::free};
}

template <typename T>
Aligned<T> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 bits(seed);
  Aligned<T> values = aligned<T>(count);
  for (std::int64_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] =
        cpu::from_float<T>(static_cast<float>(bits()) / 2147483648.0f - 1.0f);
  return values;
}

inline ConvShape padded_shape(std::int64_t images, std::int64_t in_channels, std::int64_t out_channels,
                              std::int64_t height, std::int64_t width, std::int64_t kernel,
                              std::int64_t stride, std::int64_t padding) {
  const auto out = [&](std::int64_t side) { return (side + 2 * padding - kernel) / stride + 1; };
  return {.images = images,
          .in_channels = in_channels,
          .in_height = height,
          .in_width = width,
          .out_channels = out_channels,
          .out_height = out(height),
          .out_width = out(width),
          .kernel = kernel,
          .stride = stride,
          .padding = padding};
}

// For names of tests.
inline std::string shape_name(const ConvShape& s) {
  return fmt::format("{}x{}x{}x{}To{}Kernel{}Stride{}Padding{}", s.images, s.in_channels, s.in_height,
                     s.in_width, s.out_channels, s.kernel, s.stride, s.padding);
}

inline void PrintTo(const ConvShape& s, std::ostream* stream) {
  *stream << shape_name(s);
}

inline std::int64_t in_elements(const ConvShape& s) {
  return s.images * s.in_channels * s.in_height * s.in_width;
}
inline std::int64_t out_elements(const ConvShape& s) {
  return s.images * s.out_channels * s.out_height * s.out_width;
}
inline std::int64_t weight_elements(const ConvShape& s) {
  return s.out_channels * s.in_channels * s.kernel * s.kernel;
}

// A sum of products, and of their sizes.
struct Sum {
  double value = 0, sizes = 0;
  void add(double a, double b) {
    value += a * b;
    sizes += std::abs(a * b);
  }
};

// One product of a convolution: where its operands lie in nChw16c and OIhw16i16o, or nChw8c and OIhw8i8o.
struct ConvProduct {
  std::size_t in = 0, weight = 0, out = 0;
};

// Calls visit(ConvProduct) for all pairs of an input and a result that one element of the weight joins.
// block: 8 or 16 channels.
template <typename Visit>
void for_each_product(const ConvShape& s, std::int64_t block, std::int64_t o, std::int64_t i, std::int64_t ky,
                      std::int64_t kx, Visit visit) {
  const auto place = [block](std::int64_t channels, std::int64_t pixels, std::int64_t n, std::int64_t c,
                             std::int64_t pixel) {
    return static_cast<std::size_t>(((n * channels / block + c / block) * pixels + pixel) * block +
                                    c % block);
  };
  const std::int64_t tap = ((o / block * s.in_channels / block + i / block) * s.kernel + ky) * s.kernel + kx;
  for (std::int64_t n = 0; n < s.images; ++n)
    for (std::int64_t y = 0; y < s.out_height; ++y)
      for (std::int64_t x = 0; x < s.out_width; ++x) {
        const std::int64_t in_y = y * s.stride + ky - s.padding, in_x = x * s.stride + kx - s.padding;
        if (in_y < 0 || in_x < 0 || in_y >= s.in_height || in_x >= s.in_width) continue;
        visit(
            ConvProduct{.in = place(s.in_channels, s.in_height * s.in_width, n, i, in_y * s.in_width + in_x),
                        .weight = static_cast<std::size_t>((tap * block + i % block) * block + o % block),
                        .out = place(s.out_channels, s.out_height * s.out_width, n, o, y * s.out_width + x)});
      }
}

}  // namespace plumb
