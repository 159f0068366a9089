// Depthwise convolutions, whose shape is a WindowShape: the device layout of weights, and the partition of
// weight gradient sums. The partition depends on the shape alone, so the order of summation is the same on
// every GPU. Plain C++.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/cuda/plan/norm_partition.h"
#include "kernels/program/instructions/dtype.h"
#include "models/graph.h"

namespace plumb::cuda {

// Buffer::layout of a depthwise convolution's weight [c, 1, kh, kw], its momentum, gradient and copies: a
// tap's channels are contiguous, like a pixel's.
inline constexpr std::string_view kDepthwiseLayout = "kh,kw,c";

inline bool is_depthwise(const Graph& graph, const Conv& op) {
  return op.groups > 1 && op.groups == graph.values[op.in].shape.c &&
         op.groups == graph.values[op.out].shape.c;
}

// Kernel and padding with a fast path: threads go down an image's columns and keep rows in registers.
inline bool is_depthwise_3x3(const WindowShape& shape) {
  return shape.kernel == 3 && shape.padding == 1 && shape.stride <= 2;
}

// Partition of a weight gradient. Block (tile, b) has `lanes` groups of 16 bytes of channels and the items
// from b * items_per_block on; its thread (lane, row) takes every rows-th item. 3x3: an item is a column of
// an image's output, and a thread has all taps. Otherwise an item is an output pixel, a lane is a group of
// one tap, and there is one row. Each block writes partial sums [taps, c] in f32.
struct DepthwisePartition {
  std::int64_t items = 0, items_per_block = 0;
  int lanes = 0, rows = 0, tiles = 0, blocks = 0;
};
inline constexpr int kDepthwiseThreads = 128;

inline DepthwisePartition partition_depthwise(const WindowShape& shape, DType dtype) {
  const bool by_columns = is_depthwise_3x3(shape);
  const std::int64_t groups = shape.c * static_cast<std::int64_t>(bytes_of(dtype)) / 16;
  DepthwisePartition partition{.items = shape.n * shape.out_w};
  std::int64_t all_lanes = groups, most_lanes = 32, rows_per_item = shape.out_h;
  if (!by_columns) {
    partition.items *= shape.out_h;
    all_lanes *= shape.taps();
    most_lanes = kDepthwiseThreads;
    rows_per_item = 1;
  }
  const std::int64_t lanes = std::min(all_lanes, most_lanes);
  const std::int64_t rows = by_columns ? kDepthwiseThreads / lanes : 1;
  const std::int64_t tiles = divide_up(all_lanes, lanes);
  // Enough blocks for a large GPU, but at least 28 pixels per thread: partial sums stay a few percent of the
  // bytes read.
  const std::int64_t wanted_blocks = std::max<std::int64_t>(1, 512 / tiles);
  const std::int64_t least_items = rows * divide_up(28, rows_per_item);
  partition.items_per_block =
      std::max(least_items, rows * divide_up(divide_up(partition.items, wanted_blocks), rows));
  partition.lanes = static_cast<int>(lanes);
  partition.rows = static_cast<int>(rows);
  partition.tiles = static_cast<int>(tiles);
  partition.blocks = static_cast<int>(divide_up(partition.items, partition.items_per_block));
  return partition;
}

// For conv_backward_weights; the other instructions take none.
inline std::size_t depthwise_workspace_bytes(const WindowShape& shape, DType dtype) {
  return sizeof(float) *
         static_cast<std::size_t>(partition_depthwise(shape, dtype).blocks * shape.taps() * shape.c);
}

}  // namespace plumb::cuda
