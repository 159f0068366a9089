// Partition and workspaces of a margin loss' instructions. They depend on sizes alone, so the order of
// summation is the same on every GPU. Plain C++. N: images of all ranks in the head's batch, C: rows of class
// centers that a step works with, E: embedding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plan/norm_partition.h"
#include "kernels/program/instructions/dtype.h"

namespace plumb::cuda {

inline constexpr int kMarginRows = 4;  // images per block at once: they share the data read per class
inline constexpr std::int64_t kMarginBlocks = 1024;  // enough, like kNormBlocks; more only add partial sums
inline constexpr std::int64_t kMarginRoundsMost = 8;
inline constexpr std::size_t kMarginGemmWorkspace = std::size_t{32} << 20;

// Stride of `products` between images, in elements: a multiple of 16 bytes, even for an odd number of
// classes. Matrix products of halves need that, too.
inline std::int64_t product_stride(std::int64_t classes, DType dtype) {
  const auto pack = static_cast<std::int64_t>(16 / bytes_of(dtype));
  return divide_up(classes, pack) * pack;
}
inline std::size_t product_bytes(std::int64_t images, std::int64_t classes, DType dtype) {
  return static_cast<std::size_t>(images * product_stride(classes, dtype)) * bytes_of(dtype);
}

// Block group * shares + share has the classes from share * columns on, for kMarginRows images. The grid is
// one-dimensional: the other two dimensions are limited to 65535 blocks, fewer than the groups of 2048 GPUs
// with 128 images each.
struct MarginPartition {
  std::int64_t columns = 0;  // of a share: some rounds of kThreads threads with 16 bytes each
  std::int64_t shares = 0, groups = 0;
  std::int64_t blocks() const { return shares * groups; }
};
inline MarginPartition partition_margin(std::int64_t images, std::int64_t classes, DType dtype) {
  const std::int64_t round = kThreads * static_cast<std::int64_t>(16 / bytes_of(dtype));
  const std::int64_t groups = divide_up(images, kMarginRows), rounds = divide_up(classes, round);
  const std::int64_t columns =
      round * std::clamp<std::int64_t>(rounds * groups / kMarginBlocks, 1, kMarginRoundsMost);
  return {.columns = columns, .shares = divide_up(classes, columns), .groups = groups};
}

// Partial result of a row's share of logits: their maximum, and the sum of exp(logit - maximum).
struct RowShare {
  float largest, sum;
};

// margin_sample: candidates per block.
inline constexpr int kCandidatesPerBlock = 1024;

// Workspaces in bytes. The first one holds the arrays of Lists (own/margin_sample.cu).
inline std::size_t sample_workspace_bytes(std::int64_t images, std::int64_t capacity) {
  return static_cast<std::size_t>(3 * images + 2 + divide_up(capacity, kCandidatesPerBlock)) *
         sizeof(std::int32_t);
}
inline std::size_t statistics_workspace_bytes(std::int64_t images, std::int64_t classes, DType rows_dtype) {
  return static_cast<std::size_t>(partition_margin(images, classes, rows_dtype).shares * images) *
         sizeof(RowShare);
}

}  // namespace plumb::cuda
