// The loops of the references: elements, products of a convolution, windows of a pool. Tensors are [n, c, h,
// w], row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "models/graph.h"

namespace plumb {

inline std::size_t at(const Shape& shape, std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
  return static_cast<std::size_t>(((n * shape.c + c) * shape.h + y) * shape.w + x);
}

// Calls visit(n, c, y, x) for every element.
template <typename Visit>
void for_each_element(const Shape& shape, Visit visit) {
  for (std::int64_t n = 0; n < shape.n; ++n)
    for (std::int64_t c = 0; c < shape.c; ++c)
      for (std::int64_t y = 0; y < shape.h; ++y)
        for (std::int64_t x = 0; x < shape.w; ++x) visit(n, c, y, x);
}

// Calls visit(in_index, weight_index, out_index) for the products of output channel o and of input channel i
// of its group in image n.
template <typename Visit>
void for_each_product_of_planes(const Conv& op, const Shape& in, const Shape& out, std::int64_t n,
                                std::int64_t o, std::int64_t i, Visit visit) {
  const std::int64_t in_per_group = in.c / op.groups, channel = o / (out.c / op.groups) * in_per_group + i;
  for (int ky = 0; ky < op.kernel; ++ky)
    for (int kx = 0; kx < op.kernel; ++kx) {
      const auto weight =
          static_cast<std::size_t>(((o * in_per_group + i) * op.kernel + ky) * op.kernel + kx);
      const std::int64_t down = ky - op.padding, right = kx - op.padding;
      std::int64_t begin = 0, end = out.w;  // the outputs of a row that have this product
      while (begin < end && begin * op.stride + right < 0) ++begin;
      while (end > begin && (end - 1) * op.stride + right >= in.w) --end;
      for (std::int64_t y = 0; y < out.h; ++y) {
        const std::int64_t in_y = y * op.stride + down;
        if (in_y < 0 || in_y >= in.h) continue;
        for (std::int64_t x = begin; x < end; ++x)
          visit(at(in, n, channel, in_y, x * op.stride + right), weight, at(out, n, o, y, x));
      }
    }
}

// Which elements of a convolution only one thread visits.
enum class Split { outputs, inputs, weights };

// Calls visit(in_index, weight_index, out_index) for every product of the convolution, on several threads.
template <Split kSplit, typename Visit>
void for_each_product(const Conv& op, const Shape& in, const Shape& out, Visit visit) {
  const std::int64_t in_per_group = in.c / op.groups, out_per_group = out.c / op.groups;
  if constexpr (kSplit == Split::outputs) {
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t n = 0; n < out.n; ++n)
      for (std::int64_t o = 0; o < out.c; ++o)
        for (std::int64_t i = 0; i < in_per_group; ++i)
          for_each_product_of_planes(op, in, out, n, o, i, visit);
  } else if constexpr (kSplit == Split::inputs) {
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t n = 0; n < out.n; ++n)
      for (std::int64_t c = 0; c < in.c; ++c)
        for (std::int64_t o = 0; o < out_per_group; ++o)
          for_each_product_of_planes(op, in, out, n, c / in_per_group * out_per_group + o, c % in_per_group,
                                     visit);
  } else {
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t o = 0; o < out.c; ++o)
      for (std::int64_t i = 0; i < in_per_group; ++i)
        for (std::int64_t n = 0; n < out.n; ++n) for_each_product_of_planes(op, in, out, n, o, i, visit);
  }
}

// The input element a max window takes: the first of the largest, in row-major order.
inline std::size_t argmax(const Pool& op, const Shape& in, const std::vector<double>& values, std::int64_t n,
                          std::int64_t c, std::int64_t y, std::int64_t x) {
  double largest = -std::numeric_limits<double>::infinity();
  std::size_t chosen = 0;
  for (int ky = 0; ky < op.kernel; ++ky)
    for (int kx = 0; kx < op.kernel; ++kx) {
      const std::int64_t in_y = y * op.stride + ky - op.padding, in_x = x * op.stride + kx - op.padding;
      if (in_y < 0 || in_y >= in.h || in_x < 0 || in_x >= in.w) continue;
      const std::size_t index = at(in, n, c, in_y, in_x);
      if (values[index] > largest) {
        largest = values[index];
        chosen = index;
      }
    }
  return chosen;
}

}  // namespace plumb
