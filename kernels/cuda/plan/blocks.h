// Sizes of grids, of windows and of copies. Plain C++.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/program/instructions/dtype.h"
#include "models/graph.h"

namespace plumb::cuda {

// Grid limits: first dimension; second and third (CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability"). CUDA itself refuses a launch that exceeds the second or third. In the first, a count
// of more than 32 bits would be truncated and elements would be skipped.
inline constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;
inline constexpr std::int64_t kMostBlocksBeside = 65535;

// Threads of a block where nothing speaks for another number.
inline constexpr int kThreads = 256;

// Square windows over images of c channels: of a pool, or of a depthwise convolution. Window (y, x) begins at
// (y, x) * stride - padding.
struct WindowShape {
  std::int64_t n = 0, h = 0, w = 0, c = 0;
  std::int64_t out_h = 0, out_w = 0;
  int kernel = 1, stride = 1, padding = 0;
  std::int64_t taps() const { return std::int64_t{kernel} * kernel; }
};
WindowShape window_shape(const Graph& graph, const auto& op) {
  const Shape &in = graph.values[op.in].shape, &out = graph.values[op.out].shape;
  return {.n = in.n,
          .h = in.h,
          .w = in.w,
          .c = in.c,
          .out_h = out.h,
          .out_w = out.w,
          .kernel = op.kernel,
          .stride = op.stride,
          .padding = op.padding};
}

// All pixels of images of this size, or with a shift of 1 every second one of every second row.
struct PixelGrid {
  int height = 1, width = 1, shift = 0;

  constexpr int skipped() const { return (1 << shift) - 1; }
  constexpr int grid_height() const { return (height + skipped()) >> shift; }
  constexpr int grid_width() const { return (width + skipped()) >> shift; }
  // The pixel that is the grid's `i`-th.
  constexpr std::int64_t pixel_of(int i) const {
    const int row = i / grid_width(), image = row / grid_height();
    const int y = (row - image * grid_height()) << shift, x = (i - row * grid_width()) << shift;
    return (std::int64_t{image} * height + y) * width + x;
  }
  // The inverse; -1 for a pixel that the grid leaves out.
  constexpr std::int64_t index_of(int pixel) const {
    const int line = pixel / width, image = line / height;
    const int x = pixel - line * width, y = line - image * height;
    if (((x | y) & skipped()) != 0) return -1;
    return (std::int64_t{image} * grid_height() + (y >> shift)) * grid_width() + (x >> shift);
  }
};

constexpr std::int64_t divide_up(std::int64_t count, std::int64_t by) {
  return (count + by - 1) / by;
}

// Copy of f32 elements in half precision, for a product of halves; 0 for one of f32.
constexpr std::size_t rounded_bytes(std::int64_t elements, DType dtype) {
  return dtype == DType::f32 ? 0 : static_cast<std::size_t>(divide_up(2 * elements, 256) * 256);
}

// Blocks in the grid's first dimension for `count` elements, `per_block` each. Throws std::logic_error above
// the limit of every GPU.
inline unsigned blocks_for(std::int64_t count, std::int64_t per_block) {
  const std::int64_t blocks = divide_up(count, per_block);
  if (blocks < 1 || blocks > kMostBlocks)
    throw std::logic_error("a launch for " + std::to_string(count) + " elements, " +
                           std::to_string(per_block) + " in a block, has " + std::to_string(blocks) +
                           " blocks; a GPU takes 1 to " + std::to_string(kMostBlocks));
  return static_cast<unsigned>(blocks);
}

}  // namespace plumb::cuda
