#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/margin_loss.h"
#include "kernels/cuda/own/reduce.h"
#include "models/margin_head.h"

namespace plumb::cuda {
namespace {

constexpr int kWarps = kThreads / 32;
// In place of -infinity, whose difference with itself is NaN: exp(-kNothing) times an empty sum is 0.
constexpr float kNothing = -3.402823466e38F;

__device__ std::int64_t columns_in_use(const MarginLogits& at) {
  return at.sample_count != nullptr ? *at.sample_count : at.classes;
}

// A block's images and columns.
struct BlockPlace {
  int share = 0, first_image = 0;
  std::int64_t begin = 0;  // its first column
};
__device__ BlockPlace place_of(const MarginPartition& partition) {
  const auto shares = static_cast<unsigned>(partition.shares);
  const auto share = static_cast<int>(blockIdx.x % shares);
  return {share, static_cast<int>(blockIdx.x / shares) * kMarginRows, share * partition.columns};
}

// Column of an image's label, counted from `begin`; -1 if it isn't one of `count` columns.
__device__ int target_column(const MarginLogits& at, std::int64_t image, std::int64_t begin,
                             std::int64_t count) {
  const std::int64_t column = std::int64_t{at.columns[image]} - at.first_class - begin;
  return column >= 0 && column < count ? static_cast<int>(column) : -1;
}

// Number of a block's columns, from `begin` on, that are among the first `all`.
__device__ int columns_here(std::int64_t all, std::int64_t begin, std::int64_t share_columns) {
  const std::int64_t left = all - begin;
  return static_cast<int>(left < share_columns ? (left < 0 ? 0 : left) : share_columns);
}

__device__ RowShare merged(const RowShare& a, const RowShare& b) {
  const float largest = Largest()(a.largest, b.largest);
  return {largest, a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

__device__ RowShare merged_in_warp(RowShare share) {
  for (int lanes = 16; lanes > 0; lanes /= 2)
    share =
        merged(share, {__shfl_xor_sync(~0U, share.largest, lanes), __shfl_xor_sync(~0U, share.sum, lanes)});
  return share;
}

// Whether the target is one of kCount columns from `first` on.
template <int kCount>
__device__ bool holds(int first, int target) {
  return static_cast<unsigned>(target - first) < static_cast<unsigned>(kCount);
}

// Adds logits to a share of its row.
template <int kCount>
__device__ void add_logits(const float (&logits)[kCount], RowShare& share) {
  float largest = share.largest;
#pragma unroll
  for (int i = 0; i < kCount; ++i) largest = Largest()(largest, logits[i]);
  if (largest > share.largest) share = {largest, share.sum * __expf(share.largest - largest)};
#pragma unroll
  for (int i = 0; i < kCount; ++i) share.sum += __expf(logits[i] - share.largest);
}

// A block computes the sums of its classes for its images, without their targets. Reads each product once, 4
// or 2 bytes, 16 at a time, and per class 4 bytes of its norm for kMarginRows images; writes 8 bytes per
// image. Bound by memory: some ten instructions per element, one of them the exponential.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    margin_shares(MarginLogits at, float scale, MarginPartition partition, std::int64_t stride,
                  RowShare* shares) {
  constexpr int kCount = kPack<T>;
  const auto [own_share, first_image, begin] = place_of(partition);
  const int columns = columns_here(columns_in_use(at), begin, partition.columns);
  const float* norms_here = at.class_inverse_norms + begin;
  RowShare share[kMarginRows];
  int target[kMarginRows];
  const T* products_here[kMarginRows];
#pragma unroll
  for (int r = 0; r < kMarginRows; ++r) {
    // The last image replaces missing ones; their sums are discarded.
    const std::int64_t image = first_image + r < at.images ? first_image + r : at.images - 1;
    share[r] = {kNothing, 0};
    target[r] = target_column(at, image, begin, columns);
    products_here[r] = as<T>(at.products) + image * stride + begin;
  }
  for (int first = static_cast<int>(threadIdx.x) * kCount; first < columns; first += kThreads * kCount) {
    Packed<T, kCount> products[kMarginRows];
#pragma unroll
    for (int r = 0; r < kMarginRows; ++r) products[r] = load_packed<kCount>(products_here[r] + first);
    float norms[kCount];
    load_first<kCount>(norms_here + first, columns - first, norms);
#pragma unroll
    for (int r = 0; r < kMarginRows; ++r) {
      float logits[kCount];
#pragma unroll
      for (int i = 0; i < kCount; ++i) logits[i] = products[r].at(i) * (norms[i] * scale);
      if (columns - first < kCount || holds<kCount>(first, target[r])) {
#pragma unroll
        for (int i = 0; i < kCount; ++i)
          if (first + i >= columns || first + i == target[r]) logits[i] = -INFINITY;
      }
      add_logits(logits, share[r]);
    }
  }
  __shared__ RowShare of_warp[kMarginRows][kWarps];
#pragma unroll
  for (int r = 0; r < kMarginRows; ++r) {
    const RowShare all = merged_in_warp(share[r]);
    if (threadIdx.x % 32 == 0) of_warp[r][threadIdx.x / 32] = all;
  }
  __syncthreads();
  const int row = static_cast<int>(threadIdx.x);
  if (row >= kMarginRows || first_image + row >= at.images) return;
  RowShare all = of_warp[row][0];
  for (int warp = 1; warp < kWarps; ++warp) all = merged(all, of_warp[row][warp]);
  shares[own_share * at.images + first_image + row] = all;
}

// A warp combines the shares of an image and adds its target. Reads 8 bytes per share and the target's
// product, writes 20 bytes; bound by latency.
template <typename T>
__global__ void finish_rows(MarginLogits at, float scale, Margins margins, bool straight_through,
                            std::int64_t share_count, std::int64_t stride, const RowShare* shares,
                            MarginRows rows) {
  const std::int64_t image = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (image >= at.images) return;
  RowShare row{kNothing, 0};
  for (std::int64_t share = threadIdx.x % 32; share < share_count; share += 32)
    row = merged(row, shares[share * at.images + image]);
  row = merged_in_warp(row);
  if (threadIdx.x % 32 != 0) return;
  float target_logit = 0, target_factor = 0;
  if (const int column = target_column(at, image, 0, columns_in_use(at)); column >= 0) {
    // In f64: near a cosine of 1 the derivative needs more digits than f32 has.
    const double product = to_float(as<T>(at.products)[image * stride + column]);
    const MarginTarget<double> target = margin_target(product * at.class_inverse_norms[column], margins.m1,
                                                      margins.m2, margins.m3, straight_through);
    target_logit = static_cast<float>(scale * target.cosine);
    target_factor = static_cast<float>(target.factor);
    const float logit[1] = {target_logit};
    add_logits(logit, row);
  }
  rows.local_max[image] = row.largest;
  rows.row_max[image] = row.largest;
  rows.row_sums[image] = row.sum;
  rows.row_sums[at.images + image] = target_logit;
  rows.target_factor[image] = target_factor;
}

// One image per thread: reads 12 bytes, writes 4; bound by latency.
__global__ void margin_rescale(MarginRows rows, std::int64_t images) {
  const std::int64_t image = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (image >= images) return;
  rows.row_sums[image] *= expf(rows.local_max[image] - rows.row_max[image]);
}

// A block overwrites its products with gradients. Reads and writes each once, 4 or 2 bytes, 16 at a time, and
// reads per class 4 bytes of its norm for kMarginRows images. Bound by memory, like margin_shares; 64
// registers allow 4 blocks per multiprocessor.
template <typename T>
__global__ void __launch_bounds__(kThreads, 4)
    margin_gradient(MarginLogits at, float scale, MarginRows rows, const State* state, float inverse_batch,
                    MarginPartition partition, std::int64_t stride) {
  constexpr int kCount = kPack<T>;
  const auto [own_share, first_image, begin] = place_of(partition);
  const int columns = columns_here(at.classes, begin, partition.columns);
  const int used = columns_here(columns_in_use(at), begin, partition.columns);
  const float* norms_here = at.class_inverse_norms + begin;
  T* products_here = as<T>(at.products) + first_image * stride + begin;
  const float loss_factor = state->step.loss_scale * inverse_batch;
  const auto left = static_cast<int>(min(at.images - first_image, std::int64_t{kMarginRows}));
  float row_max[kMarginRows], inverse_sum[kMarginRows];
  int target[kMarginRows];
#pragma unroll
  for (int r = 0; r < kMarginRows; ++r) {
    const std::int64_t image = first_image + (r < left ? r : 0);
    row_max[r] = rows.row_max[image];
    inverse_sum[r] = 1 / rows.row_sums[image];
    target[r] = target_column(at, image, begin, used);
  }
  for (int first = static_cast<int>(threadIdx.x) * kCount; first < columns; first += kThreads * kCount) {
    Packed<T, kCount> products[kMarginRows];
#pragma unroll
    for (int r = 0; r < kMarginRows; ++r)
      if (r < left) products[r] = load_packed<kCount>(products_here + r * stride + first);
    float weights[kCount];  // d logit / d product
    load_first<kCount>(norms_here + first, columns - first, weights);
#pragma unroll
    for (int i = 0; i < kCount; ++i) weights[i] *= scale;
#pragma unroll
    for (int r = 0; r < kMarginRows; ++r) {
      if (r >= left) break;
      float values[kCount];
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const float probability = __expf(products[r].at(i) * weights[i] - row_max[r]) * inverse_sum[r];
        values[i] = probability * (weights[i] * loss_factor);
      }
      if (used - first < kCount || holds<kCount>(first, target[r])) {
        const float probability =
            __expf(rows.row_sums[at.images + first_image + r] - row_max[r]) * inverse_sum[r];
        const float of_target = (probability - 1) * rows.target_factor[first_image + r] * loss_factor;
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          if (first + i == target[r]) values[i] = of_target * weights[i];
          if (first + i >= used) values[i] = 0;
        }
      }
      store(products_here + r * stride + first, values);
    }
  }
}

// A single block sums the own images' losses in a fixed order and writes the record of this iteration. Reads
// 12 bytes per image; bound by latency.
__global__ void margin_record(MarginRows rows, std::int64_t images, OwnImages own, const State* state,
                              IterationRecord* records) {
  double loss = 0;
  int top1 = 0;
  for (std::int64_t image = own.first + threadIdx.x; image < own.first + own.count; image += kThreads) {
    const float target = rows.row_sums[images + image], largest = rows.row_max[image];
    loss += static_cast<double>(largest) + log(static_cast<double>(rows.row_sums[image])) - target;
    top1 += target >= largest ? 1 : 0;
  }
  loss = combine_block(loss, Sum());
  top1 = combine_block(top1, Sum());
  if (threadIdx.x != 0) return;
  IterationRecord& record = records[state->step.iteration % kMetricsKept];
  record.loss = loss / static_cast<double>(own.count);
  record.top1 = top1;
  record.top5 = -1;
}

}  // namespace

void launch_margin_statistics(const MarginLogits& logits, const MarginLoss& loss, const MarginRows& rows,
                              RowShare* shares, cudaStream_t stream) {
  const MarginPartition partition = partition_margin(logits.images, logits.classes, logits.dtype);
  const std::int64_t stride = product_stride(logits.classes, logits.dtype);
  const auto scale = static_cast<float>(loss.scale);
  const bool straight_through = loss.gradient == MarginLoss::Gradient::straight_through;
  with_type_of(logits.dtype, [&]<typename T>(T) {
    gpu::launch(margin_shares<T>, blocks_for(partition.blocks(), 1), kThreads, 0, stream, logits, scale,
                partition, stride, shares);
    gpu::launch(finish_rows<T>, blocks_for(logits.images, kWarps), kThreads, 0, stream, logits, scale,
                loss.margins, straight_through, partition.shares, stride, shares, rows);
  });
}

void launch_margin_rescale(const MarginRows& rows, std::int64_t images, cudaStream_t stream) {
  gpu::launch(margin_rescale, blocks_for(images, kThreads), kThreads, 0, stream, rows, images);
}

void launch_margin_gradient(const MarginLogits& logits, float scale, const MarginRows& rows,
                            const OwnImages& own, const State* state, IterationRecord* records,
                            cudaStream_t stream) {
  const MarginPartition partition = partition_margin(logits.images, logits.classes, logits.dtype);
  with_type_of(logits.dtype, [&]<typename T>(T) {
    gpu::launch(margin_gradient<T>, blocks_for(partition.blocks(), 1), kThreads, 0, stream, logits, scale,
                rows, state, 1.0F / static_cast<float>(own.count), partition,
                product_stride(logits.classes, logits.dtype));
  });
  gpu::launch(margin_record, 1, kThreads, 0, stream, rows, logits.images, own, state, records);
}

}  // namespace plumb::cuda
