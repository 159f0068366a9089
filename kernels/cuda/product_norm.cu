#include <stdexcept>

#include "kernels/cuda/norm_coefficients.h"
#include "kernels/cuda/product_norm.h"
#include "kernels/cuda/reduce.h"

namespace plumb::cuda {
namespace {

constexpr int kSets = 4;           // of threads, which share out rows or factors
constexpr int kLanes = 64;         // of a set, a column each
constexpr int kRowsOfSet = 4;      // of product_norm_statistics
constexpr int kFactorRows = 8;     // of a block of product_norm_factors
constexpr int kMostInputs = 2048;  // sums and weights of a block are in shared memory

__device__ int own_set() {
  return static_cast<int>(threadIdx.x) / kLanes;
}
__device__ int own_column() {
  return static_cast<int>(threadIdx.x) % kLanes;
}

// The sum over a set's threads; all of the block call it, with all sets' values.
__device__ float sum_of_set(float value) {
  __shared__ float of_warps[kSets * kLanes / 32];
  value = combine_warp(value, Sum{});
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warps[own_set() * 2] + of_warps[own_set() * 2 + 1];
  __syncthreads();
  return value;
}

// A block has 16 outputs, a set 4 of them; a thread kColumns inputs at once, 64 apart. Reads the products
// from the L2 cache once per block, 4 multiply-adds per element: bound by that cache, with few inputs by its
// latency.
template <typename T, int kColumns>
__global__ void __launch_bounds__(kThreads)
    product_norm_statistics(ProductNormShape shape, ProductStatistics operands, NormStatistics into) {
  const int inputs = shape.inputs;
  float* const totals = gpu::dynamic_shared<float>();
  float* const weights = totals + inputs;  // [inputs, 16]
  const int first_row = static_cast<int>(blockIdx.x) * kSets * kRowsOfSet;
  const auto pixels = static_cast<float>(shape.pixels);
  for (int i = static_cast<int>(threadIdx.x); i < inputs; i += kThreads) {
    totals[i] = operands.sums[i];
#pragma unroll
    for (int row = 0; row < kSets * kRowsOfSet; ++row)
      weights[i * kSets * kRowsOfSet + row] = operands.weight[(first_row + row) * inputs + i];
  }
  __syncthreads();
  const int own_row = own_set() * kRowsOfSet;
  float means_of_rows[kRowsOfSet] = {}, variances[kRowsOfSet] = {};
  for (int base = own_column(); base < inputs; base += kColumns * kLanes) {
    float deviations[kColumns][kRowsOfSet] = {}, means[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) means[c] = totals[base + c * kLanes] / pixels;
#pragma unroll 16
    for (int i = 0; i < inputs; ++i) {
      float of_rows[kRowsOfSet];
      load<kRowsOfSet>(weights + i * kSets * kRowsOfSet + own_row, of_rows);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const float covariance = operands.products[i * inputs + base + c * kLanes] - totals[i] * means[c];
#pragma unroll
        for (int row = 0; row < kRowsOfSet; ++row) deviations[c][row] += of_rows[row] * covariance;
      }
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int j = base + c * kLanes;
#pragma unroll
      for (int row = 0; row < kRowsOfSet; ++row) {
        const float weight = weights[j * kSets * kRowsOfSet + own_row + row];
        const float deviation = deviations[c][row] / pixels;
        operands.deviations[(first_row + own_row + row) * inputs + j] = deviation;
        variances[row] += weight * deviation;
        means_of_rows[row] += weight * means[c];
      }
    }
  }
  float* const scales = weights + inputs * kSets * kRowsOfSet;  // [16]
#pragma unroll
  for (int row = 0; row < kRowsOfSet; ++row) {
    const float mean = sum_of_set(means_of_rows[row]), variance = fmaxf(sum_of_set(variances[row]), 0);
    if (own_column() != 0) continue;
    const int channel = first_row + own_row + row;
    settle(into, channel, shape.outputs, mean, variance, shape.pixels);
    scales[own_row + row] = as<float>(into.scale_shift)[channel];
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < inputs; i += kThreads)
#pragma unroll
    for (int row = 0; row < kSets * kRowsOfSet; ++row) {
      const T scaled = from_float<T>(scales[row] * weights[i * kSets * kRowsOfSet + row]);
      as<T>(operands.scaled)[(first_row + row) * inputs + i] = scaled;
      as<T>(operands.scaled_transposed)[i * shape.outputs + first_row + row] = scaled;
    }
}

// A warp has an output. Reads 12 bytes per weight, writes 2 or 4: bound by latency.
template <typename D>
__global__ void __launch_bounds__(kThreads)
    product_norm_gradients(ProductNormShape shape, ProductBackward operands) {
  const int output = static_cast<int>(blockIdx.x) * (kThreads / 32) + static_cast<int>(threadIdx.x) / 32;
  if (output >= shape.outputs) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, inputs = shape.inputs;
  const auto pixels = static_cast<float>(shape.pixels);
  const std::int64_t first = std::int64_t{output} * inputs;
  const float d_out_sum = operands.d_out_sums[output], mean_gradient = d_out_sum / pixels;
  const auto centered = [&](int i) {
    return operands.products[first + i] - mean_gradient * operands.sums[i];
  };
  float product = 0, largest = 0;
  for (int i = lane; i < inputs; i += 32) {
    const float weight = operands.weight[first + i];
    product += weight * centered(i);
    largest = fmaxf(largest, fabsf(weight));
  }
  const float inv_std = operands.inv_std[output];
  const float d_scale = combine_warp(product, Sum{}) * inv_std;
  const float of_gradient = operands.scale[output] * inv_std;
  largest = combine_warp(largest, Largest{});
  const float of_deviations = -of_gradient * inv_std * d_scale, of_in = of_deviations / pixels;
  for (int i = lane; i < inputs; i += 32)
    as<D>(operands.d_weight)[first + i] =
        from_float<D>(of_gradient * centered(i) + of_deviations * operands.deviations[first + i]);
  if (lane > 0) return;
  operands.d_scale[output] = d_scale;
  if (operands.d_bias) operands.d_bias[output] = d_out_sum;
  operands.coefficients[output] = of_in;
  operands.coefficients[2 * shape.outputs + output] = fabsf(of_in) * largest * largest;
  operands.coefficients[shape.outputs + output] =
      -of_gradient * mean_gradient - of_in * operands.mean[output];
}

// The power of two that brings what bounds all factors below 2^15, so that none passes the largest f16, but
// not below 2^14. |sum over k of B w_i w_j| <= sum of |B| max w^2.
__device__ float power_for(float bound) {
  constexpr int kBits = 15, kMostBits = 120;  // so that the power and its inverse are normal
  if (!(bound > 0) || !isfinite(bound)) return 1;
  int exponent = 0;
  frexpf(bound, &exponent);
  return ldexpf(1, min(max(kBits - exponent, -kMostBits), kMostBits));
}

// A block has 8 rows of the factors and 64 columns; a set every fourth output. Reads 36 bytes per output and
// column from the L2 cache for 8 multiply-adds: bound by its latency.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    product_norm_factors(ProductNormShape shape, ProductBackward operands) {
  const int inputs = shape.inputs, outputs = shape.outputs;
  const float *const of_in = operands.coefficients, *const constants = of_in + outputs;
  const float* const bounds = constants + outputs;
  float bound = 0;
  for (int k = static_cast<int>(threadIdx.x); k < outputs; k += kThreads) bound += bounds[k];
  const float power = power_for(combine_block<kThreads>(bound, Sum{}));
  const int column = static_cast<int>(blockIdx.x) * kLanes + own_column();
  const int first_row = static_cast<int>(blockIdx.y) * kFactorRows;
  float sums[kFactorRows + 1] = {};
#pragma unroll 8
  for (int k = own_set(); k < outputs; k += kSets) {
    const float* const weights = operands.weight + std::int64_t{k} * inputs;
    const float weight = weights[column], term = weight * of_in[k];
    float of_rows[kFactorRows];
    load<kFactorRows>(weights + first_row, of_rows);
#pragma unroll
    for (int row = 0; row < kFactorRows; ++row) sums[row] += of_rows[row] * term;
    sums[kFactorRows] += weight * constants[k];
  }
  __shared__ float of_sets[kSets][kFactorRows + 1][kLanes];
#pragma unroll
  for (int row = 0; row <= kFactorRows; ++row) of_sets[own_set()][row][own_column()] = sums[row];
  __syncthreads();
  for (int row = own_set(); row <= kFactorRows; row += kSets) {
    float total = 0;
#pragma unroll
    for (int set = 0; set < kSets; ++set) total += of_sets[set][row][own_column()];
    if (row < kFactorRows)
      as<T>(operands.factors)[(first_row + row) * inputs + column] = from_float<T>(total * power);
    else if (blockIdx.y == 0)
      operands.shift[column] = total;
  }
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) operands.shift[inputs] = 1 / power;
}

void check_shape(const ProductNormShape& shape) {
  if (shape.inputs % kLanes != 0 || shape.inputs > kMostInputs || shape.outputs % (kSets * kRowsOfSet) != 0)
    throw std::logic_error("norms of products want inputs in 64s, at most 2048, and outputs in 16s");
}

}  // namespace

void launch_product_norm_statistics(const ProductNormShape& shape, DType dtype,
                                    const ProductStatistics& operands, const NormStatistics& into,
                                    cudaStream_t stream) {
  check_shape(shape);
  constexpr int kRows = kSets * kRowsOfSet;
  const std::size_t shared =
      sizeof(float) * (static_cast<std::size_t>(shape.inputs) * (1 + kRows) + std::size_t{kRows});
  with_half_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    const int columns = shape.inputs / kLanes;
    const auto kernel = columns % 4 == 0   ? product_norm_statistics<T, 4>
                        : columns % 2 == 0 ? product_norm_statistics<T, 2>
                                           : product_norm_statistics<T, 1>;
    gpu::launch(kernel, dim3(blocks_for(shape.outputs, kRows)), dim3(kThreads), shared, stream, shape,
                operands, into);
  });
}

void launch_product_norm_backward(const ProductNormShape& shape, DType dtype, const ProductBackward& operands,
                                  cudaStream_t stream) {
  check_shape(shape);
  with_type_of(operands.d_weight_dtype, [&](auto type) {
    gpu::launch(product_norm_gradients<decltype(type)>, dim3(blocks_for(shape.outputs, kThreads / 32)),
                dim3(kThreads), 0, stream, shape, operands);
  });
  with_half_type_of(dtype, [&](auto type) {
    gpu::launch(product_norm_factors<decltype(type)>,
                dim3(blocks_for(shape.inputs, kLanes), blocks_for(shape.inputs, kFactorRows)), dim3(kThreads),
                0, stream, shape, operands);
  });
}

}  // namespace plumb::cuda
