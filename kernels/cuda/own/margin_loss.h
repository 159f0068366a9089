// Softmax cross-entropy over products of unit features and class centers, with a margin on the target, and
// its gradient; norms and unit vectors of features and centers; the centers of a step of a sampled head.
// models/margin_head.h has the arithmetic, kernels/program/margin_lowering.h the tensors. Everything is
// enqueued on the stream; launches depend on sizes alone; addresses are multiples of 16 bytes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plan/margin_partition.h"
#include "kernels/cuda/plan/state.h"
#include "kernels/program/instructions/dtype.h"
#include "models/graph.h"
#include "models/margin_head.h"

namespace plumb::cuda {

// Input of the softmax: logit_ij = scale * products_ij * class_inverse_norms_j, with the margin where j is
// i's label. Columns from *sample_count on are ignored. At most 2^31 - 1 classes, and as many blocks of a
// MarginPartition; there may be more products.
struct MarginLogits {
  std::byte* products = nullptr;  // [images, classes], rows product_stride() apart
  DType dtype = DType::f32;       // of products: f32, f16 or bf16
  std::int64_t images = 0, classes = 0;
  const float* class_inverse_norms = nullptr;  // [classes]
  const std::int32_t* columns = nullptr;       // [images]: the label's, plus first_class; outside: not here
  std::int32_t first_class = 0;
  const std::int32_t* sample_count = nullptr;  // null: all columns count
};

// Per row, [images] f32 unless noted.
struct MarginRows {
  float* local_max = nullptr;
  float* row_max = nullptr;
  float* row_sums = nullptr;  // [2, images]: sum of exp(logit - max); target's logit, 0 if not on this rank
  float* target_factor = nullptr;  // 0 if the target isn't on this rank
};

// Writes all of `rows`, row_max as local_max; on a rank without columns the maximum is the lowest finite f32.
// `shares` is the workspace, [partition.shares, images]. A NaN among a row's products makes its sum NaN.
void launch_margin_statistics(const MarginLogits& logits, const MarginLoss& loss, const MarginRows& rows,
                              RowShare* shares, cudaStream_t stream);

// row_sums[0] *= exp(local_max - row_max).
void launch_margin_rescale(const MarginRows& rows, std::int64_t images, cudaStream_t stream);

// This rank's own rows; gradients are divided by their number.
struct OwnImages {
  std::int64_t first = 0, count = 0;
};
// products_ij := (p_ij - [j = y_i]) / own.count * scale * factor_ij * class_inverse_norms_j * loss_scale, 0
// in ignored columns. The mean loss over the own rows, and how many of their targets have the largest logit,
// margin included, go to the record of the state's iteration; top5 becomes -1.
void launch_margin_gradient(const MarginLogits& logits, float scale, const MarginRows& rows,
                            const OwnImages& own, const State* state, IterationRecord* records,
                            cudaStream_t stream);

// Below, matrices are row-major with `embedding` columns, a multiple of 8.
//
// normalized = x * inverse_norms, inverse_norms = inverse_norm(|x|^2) (models/margin_head.h); also copies the
// labels to labels_out. [images, embedding], [images].
struct MarginFeatures {
  const float* features = nullptr;
  const std::int32_t* labels = nullptr;
  float* normalized = nullptr;
  std::int32_t* labels_out = nullptr;
  float* inverse_norms = nullptr;
};
void launch_margin_features(const MarginFeatures& at, std::int64_t images, std::int64_t embedding,
                            cudaStream_t stream);

// inverse_norms[k] of rows[k], f32, f16 or bf16; 0 from *sample_count on, which may be null.
void launch_class_norms(DType dtype, const std::byte* rows, const std::int32_t* sample_count,
                        float* inverse_norms, std::int64_t classes, std::int64_t embedding,
                        cudaStream_t stream);

// Gradient through x -> x / |x|: d_features = (d - unit (unit . d)) / |x|, all f32.
void launch_features_backward(const float* d_unit, const float* unit, const float* inverse_norms,
                              float* d_features, std::int64_t images, std::int64_t embedding,
                              cudaStream_t stream);

// In place: U = d_rows becomes U - w (w . U) / |w|^2, where w = rows. U is the result of the product with the
// features, d_w^ / |w|.
void launch_project_rows(DType dtype, std::byte* d_rows, const std::byte* rows, const float* inverse_norms,
                         std::int64_t classes, std::int64_t embedding, cudaStream_t stream);

// Rows of this rank's `own_classes` centers: its distinct labels, ascending, then values of
// class_permutation(key, iteration, own_classes) that are no labels, in order, until there are max(least,
// labels) rows. models/margin_head.h defines this order.
struct MarginSample {
  const std::int32_t* labels = nullptr;  // [images]: of all ranks
  const State* state = nullptr;
  std::int32_t* samples = nullptr;  // [capacity]: rows of weight, -1 behind those in use
  std::int32_t* sample_count = nullptr;
  std::int32_t* columns = nullptr;    // [images]: the label's place among the samples, -1 on other ranks
  std::int32_t* workspace = nullptr;  // sample_workspace_bytes()
  PhiloxKey key{};
  std::int64_t images = 0, capacity = 0;
  std::int32_t first_class = 0, own_classes = 0;
  std::int32_t least = 0;  // sampled_rows()
};
void launch_margin_sample(const MarginSample& at, cudaStream_t stream);

// rows[k] = weight[samples[k]] in `dtype` for k < *sample_count, then zeros; [capacity, embedding].
struct GatheredRows {
  const std::int32_t* samples = nullptr;
  const std::int32_t* sample_count = nullptr;
  const float* weight = nullptr;
  std::byte* rows = nullptr;
  DType dtype = DType::f32;
};
void launch_margin_gather(const GatheredRows& at, std::int64_t capacity, std::int64_t embedding,
                          cudaStream_t stream);

}  // namespace plumb::cuda
