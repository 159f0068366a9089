// The extents of a convolution without groups, for loops of our own.
#pragma once

#include <cstdint>

#include "models/graph.h"

namespace plumb {

struct ConvShape {
  std::int64_t images = 0;
  std::int64_t in_channels = 0, in_height = 0, in_width = 0;
  std::int64_t out_channels = 0, out_height = 0, out_width = 0;
  std::int64_t kernel = 1, stride = 1, padding = 0;
};

inline ConvShape conv_shape(const Graph& graph, const Conv& op) {
  const Shape &in = graph.values[op.in].shape, &out = graph.values[op.out].shape;
  return {.images = in.n,
          .in_channels = in.c,
          .in_height = in.h,
          .in_width = in.w,
          .out_channels = out.c,
          .out_height = out.h,
          .out_width = out.w,
          .kernel = op.kernel,
          .stride = op.stride,
          .padding = op.padding};
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace plumb
