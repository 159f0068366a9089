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

// Calls visit(in_index, weight_index, out_index) for every product of the convolution.
template <typename Visit>
void for_each_product(const Conv& op, const Shape& in, const Shape& out, Visit visit) {
  const std::int64_t in_per_group = in.c / op.groups, out_per_group = out.c / op.groups;
  for_each_element(out, [&](std::int64_t n, std::int64_t o, std::int64_t y, std::int64_t x) {
    const std::int64_t first_in = o / out_per_group * in_per_group;
    for (std::int64_t i = 0; i < in_per_group; ++i)
      for (int ky = 0; ky < op.kernel; ++ky)
        for (int kx = 0; kx < op.kernel; ++kx) {
          const std::int64_t in_y = y * op.stride + ky - op.padding, in_x = x * op.stride + kx - op.padding;
          if (in_y < 0 || in_y >= in.h || in_x < 0 || in_x >= in.w) continue;
          const std::int64_t weight = ((o * in_per_group + i) * op.kernel + ky) * op.kernel + kx;
          visit(at(in, n, first_in + i, in_y, in_x), static_cast<std::size_t>(weight), at(out, n, o, y, x));
        }
  });
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
