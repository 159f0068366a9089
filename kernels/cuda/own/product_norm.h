// Coefficients of a norm whose input is a product that is never stored
// (kernels/program/instructions/block_end.h, which has the formulas). Everything is enqueued on the stream;
// results repeat bit for bit. f32 unless noted.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/own/norm.h"
#include "kernels/program/instructions/dtype.h"

namespace plumb::cuda {

struct ProductNormShape {
  std::int64_t pixels = 0;
  int inputs = 0;   // channels of the convolution's input: a multiple of 64, at most 1024
  int outputs = 0;  // of its output: a multiple of 16, at most 4096
};

struct ProductStatistics {
  const float *products = nullptr, *sums = nullptr,
              *weight = nullptr;  // [inputs, inputs], [inputs], [outputs, inputs]
  std::byte *scaled = nullptr,
            *scaled_transposed = nullptr;  // [outputs, inputs], [inputs, outputs] in `dtype`
  float* deviations = nullptr;             // [outputs, inputs]
  bool tf32 = false;                       // scaled and scaled_transposed are rounded for tensor cores
};
void launch_product_norm_statistics(const ProductNormShape& shape, DType dtype,
                                    const ProductStatistics& operands, const NormStatistics& into,
                                    cudaStream_t stream);

struct ProductBackward {
  const float *products = nullptr, *d_out_sums = nullptr;  // [outputs, inputs], [outputs]
  const float *sums = nullptr, *deviations = nullptr;      // ProductStatistics'
  const float *weight = nullptr, *scale = nullptr, *inv_std = nullptr;
  std::byte* d_weight = nullptr;  // [outputs, inputs]
  DType d_weight_dtype = DType::f32;
  float *d_scale = nullptr, *d_bias = nullptr;  // [outputs]; d_bias may be null
  std::byte* factors = nullptr;                 // [inputs, inputs] in `dtype`
  bool tf32 = false;                            // factors are rounded for tensor cores
  float* shift = nullptr;                       // [inputs + 1]
  float* workspace = nullptr;                   // product_norm_workspace()
};
// Four blocks share out the outputs that the factors are sums over. The last to end, by a counter for at
// least 4 rows of the factors, adds their sums.
inline constexpr int kProductNormSplits = 4;
constexpr int product_norm_counters(const ProductNormShape& shape) {
  return shape.inputs / 4;
}
constexpr std::size_t product_norm_workspace(const ProductNormShape& shape) {
  const auto inputs = static_cast<std::size_t>(shape.inputs),
             outputs = static_cast<std::size_t>(shape.outputs);
  return sizeof(float) * (3 * outputs + static_cast<std::size_t>(product_norm_counters(shape)) +
                          kProductNormSplits * (inputs + 1) * inputs);
}
void launch_product_norm_backward(const ProductNormShape& shape, DType dtype, const ProductBackward& operands,
                                  cudaStream_t stream);

}  // namespace plumb::cuda
