// Row-wise work of a margin loss on features and class centers: norms, unit vectors, and the gradients
// through them. Matrices are row-major with `embedding` columns, a multiple of 8; everything is enqueued on
// the stream; addresses are multiples of 16 bytes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/program/instructions/dtype.h"

namespace plumb::cuda {

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

// In place: U becomes U - w (w . U) / |w|^2. U is the result of the product with the features, d_w^ / |w|.
struct ProjectedRows {
  std::byte* d_rows = nullptr;
  const std::byte* rows = nullptr;
  DType dtype = DType::f32;  // of both
  const float* inverse_norms = nullptr;
};
void launch_project_rows(const ProjectedRows& at, std::int64_t classes, std::int64_t embedding,
                         cudaStream_t stream);

}  // namespace plumb::cuda
