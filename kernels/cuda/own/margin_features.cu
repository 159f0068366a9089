#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/margin_loss.h"
#include "kernels/cuda/own/reduce.h"

namespace plumb::cuda {
namespace {

constexpr int kRowsPerBlock = kThreads / 32;  // per block: one per warp

__device__ std::int64_t row_of_warp() {
  return std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / 32;
}

// Calls body(first element) for each of a lane's groups of kCount elements in a row.
template <int kCount, typename Body>
__device__ void for_share_of_row(int embedding, const Body& body) {
  for (int first = static_cast<int>(threadIdx.x % 32) * kCount; first < embedding; first += 32 * kCount)
    body(first);
}

template <typename T>
__device__ float squares_of_row(const T* row, int embedding) {
  constexpr int kCount = kPack<T>;
  float squares = 0;
  for_share_of_row<kCount>(embedding, [&](int first) {
    float values[kCount];
    load(row + first, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) squares += values[i] * values[i];
  });
  return combine_warp(squares, Sum());
}

// A warp computes one unit vector. Reads 4 bytes per element from memory and again from the cache, writes 4;
// bound by latency: features are few (256 KB for 128 x 512).
__global__ void normalize_features(MarginFeatures at, std::int64_t images, int embedding) {
  constexpr int kCount = kPack<float>;
  const std::int64_t image = row_of_warp();
  if (image >= images) return;
  const float* features = at.features + image * embedding;
  float* normalized = at.normalized + image * embedding;
  const float inverse = inverse_norm(squares_of_row(features, embedding));
  for_share_of_row<kCount>(embedding, [&](int first) {
    float values[kCount];
    load(features + first, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] *= inverse;
    store(normalized + first, values);
  });
  if (threadIdx.x % 32 != 0) return;
  at.inverse_norms[image] = inverse;
  at.labels_out[image] = at.labels[image];
}

// A warp computes the norm of one class center. Reads 4 or 2 bytes per element, 16 at a time. Memory-bound.
template <typename T>
__global__ void class_norms(const T* rows, const std::int32_t* sample_count, float* inverse_norms,
                            std::int64_t classes, int embedding) {
  const std::int64_t row = row_of_warp();
  if (row >= classes) return;
  float inverse = 0;
  if (sample_count == nullptr || row < *sample_count)
    inverse = inverse_norm(squares_of_row(rows + row * embedding, embedding));
  if (threadIdx.x % 32 == 0) inverse_norms[row] = inverse;
}

// A warp removes the component of one row along `along`: out = outer * (d - inner * along (along . d)). Reads
// d and `along` from memory (8 bytes per element in f32) and again from the cache, where the warp's 2 to 4 KB
// still are, and writes d's bytes; bound by memory. `out` may be d.
template <typename T>
__device__ void take_out(const T* d, const T* along, T* out, float outer, float inner, int embedding) {
  constexpr int kCount = kPack<T>;
  float dot = 0;
  for_share_of_row<kCount>(embedding, [&](int first) {
    float values[kCount], directions[kCount];
    load(d + first, values);
    load(along + first, directions);
#pragma unroll
    for (int i = 0; i < kCount; ++i) dot += values[i] * directions[i];
  });
  dot = inner * combine_warp(dot, Sum());
  for_share_of_row<kCount>(embedding, [&](int first) {
    float values[kCount], directions[kCount];
    load(d + first, values);
    load(along + first, directions);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = outer * (values[i] - dot * directions[i]);
    store(out + first, values);
  });
}

// One image per warp; bytes and bound: see take_out.
__global__ void features_backward(const float* d_unit, const float* unit, const float* inverse_norms,
                                  float* d_features, std::int64_t images, int embedding) {
  const std::int64_t image = row_of_warp();
  if (image >= images) return;
  const std::int64_t at = image * embedding;
  take_out(d_unit + at, unit + at, d_features + at, inverse_norms[image], 1.0F, embedding);
}

// One class per warp; bytes and bound: see take_out.
template <typename T>
__global__ void project_rows(T* d_rows, const T* rows, const float* inverse_norms, std::int64_t classes,
                             int embedding) {
  const std::int64_t row = row_of_warp();
  if (row >= classes) return;
  const std::int64_t at = row * embedding;
  const float inverse = inverse_norms[row];
  take_out(d_rows + at, rows + at, d_rows + at, 1.0F, inverse * inverse, embedding);
}

}  // namespace

void launch_margin_features(const MarginFeatures& at, std::int64_t images, std::int64_t embedding,
                            cudaStream_t stream) {
  gpu::launch(normalize_features, blocks_for(images, kRowsPerBlock), kThreads, 0, stream, at, images,
              static_cast<int>(embedding));
}

void launch_class_norms(DType dtype, const std::byte* rows, const std::int32_t* sample_count,
                        float* inverse_norms, std::int64_t classes, std::int64_t embedding,
                        cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    gpu::launch(class_norms<T>, blocks_for(classes, kRowsPerBlock), kThreads, 0, stream, as<T>(rows),
                sample_count, inverse_norms, classes, static_cast<int>(embedding));
  });
}

void launch_features_backward(const float* d_unit, const float* unit, const float* inverse_norms,
                              float* d_features, std::int64_t images, std::int64_t embedding,
                              cudaStream_t stream) {
  gpu::launch(features_backward, blocks_for(images, kRowsPerBlock), kThreads, 0, stream, d_unit, unit,
              inverse_norms, d_features, images, static_cast<int>(embedding));
}

void launch_project_rows(DType dtype, std::byte* d_rows, const std::byte* rows, const float* inverse_norms,
                         std::int64_t classes, std::int64_t embedding, cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    gpu::launch(project_rows<T>, blocks_for(classes, kRowsPerBlock), kThreads, 0, stream, as<T>(d_rows),
                as<T>(rows), inverse_norms, classes, static_cast<int>(embedding));
  });
}

}  // namespace plumb::cuda
