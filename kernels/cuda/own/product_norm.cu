#include <type_traits>

#include "kernels/cuda/own/block_end.h"
#include "kernels/cuda/own/norm_tile.h"
#include "kernels/cuda/own/reduce.h"

namespace plumb::cuda {
namespace {

constexpr int kProductColumns = 4;  // of a product's row, a thread's
constexpr int kMostInputs = kThreads * kProductColumns;
static_assert(kMostInputs == kMostProductInputs && kProductNormSplits * kMostInputs == kMostProductOutputs);

// The scratch of product_norm_backward, ProductBackward::workspace.
struct ProductCoefficients {
  float *of_in, *of_gradient, *bounds;  // [outputs]: B, A, and what bounds the output's part of the factors
  unsigned* counters;                   // of a block row's splits that have ended; a row has at least 4 rows
  float* partials;                      // [splits, inputs + 1, inputs]: the factors, then of the shift
  __device__ ProductCoefficients(const ProductNormShape& shape, float* workspace)
      : of_in(workspace),
        of_gradient(of_in + shape.outputs),
        bounds(of_gradient + shape.outputs),
        counters(reinterpret_cast<unsigned*>(bounds + shape.outputs)),
        partials(bounds + shape.outputs + product_norm_counters(shape)) {}
};

// What a product reads of a factor that is stored as T.
template <typename T>
__device__ float rounded(float factor, bool tf32) {
  return to_float(from_float<T>(as_factor<T>(factor, tf32)));
}

// What multiply_rows() needs of shared memory, f32: the left factors, then the sets' sums.
template <int kRows>
constexpr int kRowFloats = kRows* kMostInputs;

// A block multiplies kRows rows of the left factor with all columns of the right one. A thread has 4 columns.
// Sets of threads, which have all columns, share out the terms.
struct OwnColumns {
  int sets, set, column;
  __device__ explicit OwnColumns(int columns)
      : sets(kThreads * kProductColumns / columns),
        set(static_cast<int>(threadIdx.x) * kProductColumns / columns),
        column(static_cast<int>(threadIdx.x) * kProductColumns % columns) {}
};

// Leaves in `shared` the sums of each set, [sets, kRows, columns]: over its terms k, left[k][row] times what
// adjust(k, values) makes of the thread's columns of right[k]. `shared` begins with left, [terms, kRows]. A
// thread reads elements of `right` that no other thread of the block reads, so they go to registers, some
// terms ahead.
template <int kRows, typename Adjust>
__device__ void multiply_rows(float* shared, const float* right, int terms, int columns,
                              const Adjust& adjust) {
  constexpr int kAhead = kRows / 2;
  const OwnColumns own(columns);
  right += own.column;
  float sums[kRows][kProductColumns] = {}, first[kAhead][kProductColumns], second[kAhead][kProductColumns];
  const int together = kAhead * own.sets;
  const auto fetch = [&](int k, float(&values)[kProductColumns]) {
    load<kProductColumns>(right + min(k, terms - 1) * columns, values);
  };
  const auto add = [&](int k, float(&values)[kProductColumns]) {
    adjust(k, values);
    float of_rows[kRows];
    load<kRows>(shared + k * kRows, of_rows);
#pragma unroll
    for (int row = 0; row < kRows; ++row)
#pragma unroll
      for (int c = 0; c < kProductColumns; ++c) sums[row][c] += of_rows[row] * values[c];
  };
  const auto fetch_all = [&](int k, float(&values)[kAhead][kProductColumns]) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) fetch(k + i * own.sets, values[i]);
  };
  const auto add_all = [&](int k, float(&values)[kAhead][kProductColumns]) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) add(k + i * own.sets, values[i]);
  };
  int k = own.set;
  fetch_all(k, first);
  for (; k + (2 * kAhead - 1) * own.sets < terms; k += 2 * together) {
    fetch_all(k + together, second);
    add_all(k, first);
    fetch_all(k + 2 * together, first);
    add_all(k + together, second);
  }
  for (; k < terms; k += own.sets) {
    fetch(k, first[0]);
    add(k, first[0]);
  }
  __syncthreads();  // all have read left
  if (own.set < own.sets)
#pragma unroll
    for (int row = 0; row < kRows; ++row)
      store<kProductColumns>(shared + (own.set * kRows + row) * columns + own.column, sums[row]);
  __syncthreads();
}

// The sums of all sets at one of the places [kRows, columns] and the next three.
template <int kRows>
__device__ void sum_sets(const float* shared, int columns, int place, float (&sums)[kProductColumns]) {
#pragma unroll
  for (int c = 0; c < kProductColumns; ++c) sums[c] = 0;
#pragma unroll 2
  for (int set = 0; set < kMostInputs / columns; ++set) {
    float more[kProductColumns];
    load<kProductColumns>(shared + set * kRows * columns + place, more);
#pragma unroll
    for (int c = 0; c < kProductColumns; ++c) sums[c] += more[c];
  }
}

// Statistics of kRows outputs. The block reads all products from the L2 cache, 4 bytes for 2 kRows + 2
// FLOP: with 512 inputs and 128 blocks of 16 rows 134 MB, at 5.5 TB/s of an H100's L2 cache 0.024 ms, and
// 1.1 GFLOP, 0.016 ms. With 64 and 128 inputs latency binds: six round trips to memory, about 5 us.
template <typename T, int kRows>
__global__ void __launch_bounds__(kThreads)
    product_norm_statistics(ProductNormShape shape, ProductStatistics operands, NormStatistics into) {
  const int inputs = shape.inputs, thread = static_cast<int>(threadIdx.x);
  float* const shared = gpu::dynamic_shared<float>();
  float *const totals = shared + kRowFloats<kRows>, *const scales = totals + inputs;  // [inputs], [kRows]
  const int first_row = static_cast<int>(blockIdx.x) * kRows;
  const float pixels = static_cast<float>(shape.pixels), per_pixel = 1 / pixels;
  const float* const weight = operands.weight + first_row * inputs;
  const auto load_weights = [&](int i, float(&of_rows)[kRows]) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) of_rows[row] = weight[row * inputs + i];
  };
  for (int i = thread; i < inputs; i += kThreads) {
    totals[i] = operands.sums[i];
    float of_rows[kRows];
    load_weights(i, of_rows);
    store<kRows>(shared + i * kRows, of_rows);
  }
  __syncthreads();
  float means[kProductColumns];
  load<kProductColumns>(totals + OwnColumns(inputs).column, means);
#pragma unroll
  for (int c = 0; c < kProductColumns; ++c) means[c] /= pixels;
  multiply_rows<kRows>(shared, operands.products, inputs, inputs,
                       [&](int k, float(&values)[kProductColumns]) {
#pragma unroll
                         for (int c = 0; c < kProductColumns; ++c) values[c] -= totals[k] * means[c];
                       });
  const int lane = thread % 32;
  for (int row = thread / 32; row < kRows; row += kThreads / 32) {
    float mean = 0, variance = 0;
    for (int i = lane * kProductColumns; i < inputs; i += 32 * kProductColumns) {
      float weights[kProductColumns], of_inputs[kProductColumns], deviations[kProductColumns];
      load<kProductColumns>(weight + row * inputs + i, weights);
      load<kProductColumns>(totals + i, of_inputs);
      sum_sets<kRows>(shared, inputs, row * inputs + i, deviations);
#pragma unroll
      for (int c = 0; c < kProductColumns; ++c) {
        deviations[c] *= per_pixel;
        variance += weights[c] * deviations[c];
        mean += weights[c] * of_inputs[c];
      }
      store<kProductColumns>(operands.deviations + (first_row + row) * inputs + i, deviations);
    }
    mean = combine_warp(mean, Sum{}) / pixels, variance = fmaxf(combine_warp(variance, Sum{}), 0);
    if (lane == 0) {
      settle(into, first_row + row, shape.outputs, mean, variance, shape.pixels);
      scales[row] = as<float>(into.scale_shift)[first_row + row];
    }
    __syncwarp();
    float product = 0;  // the mean of what the rounded factors multiply
    for (int i = lane * kProductColumns; i < inputs; i += 32 * kProductColumns) {
      float scaled[kProductColumns], of_inputs[kProductColumns];
      load<kProductColumns>(weight + row * inputs + i, scaled);
      load<kProductColumns>(totals + i, of_inputs);
#pragma unroll
      for (int c = 0; c < kProductColumns; ++c) {
        scaled[c] = rounded<T>(scaled[c] * scales[row], operands.tf32);
        product += scaled[c] * of_inputs[c];
      }
      store<kProductColumns>(as<T>(operands.scaled) + (first_row + row) * inputs + i, scaled);
    }
    product = combine_warp(product, Sum{}) / pixels;
    if (lane == 0)
      as<float>(into.scale_shift)[shape.outputs + first_row + row] = into.bias[first_row + row] - product;
  }
  __syncthreads();
  for (int i = thread; i < inputs; i += kThreads) {
    float scaled[kRows];
    load_weights(i, scaled);
#pragma unroll
    for (int row = 0; row < kRows; ++row) scaled[row] = rounded<T>(scaled[row] * scales[row], operands.tf32);
    store<kRows>(as<T>(operands.scaled_transposed) + i * shape.outputs + first_row, scaled);
  }
}

// A warp has an output. Reads 12 bytes per weight, writes 2 or 4: 16 MB with 512 inputs, from the L2 cache
// about 4 us, of which latency takes 3.
template <typename D>
__global__ void __launch_bounds__(kThreads)
    product_norm_gradients(ProductNormShape shape, ProductBackward operands) {
  const ProductCoefficients into(shape, operands.workspace);
  if (blockIdx.x == 0)
    for (int i = static_cast<int>(threadIdx.x); i < product_norm_counters(shape); i += kThreads)
      into.counters[i] = 0;
  const int output = static_cast<int>(blockIdx.x) * (kThreads / 32) + static_cast<int>(threadIdx.x) / 32;
  if (output >= shape.outputs) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, inputs = shape.inputs, first = output * inputs;
  const auto pixels = static_cast<float>(shape.pixels);
  const float d_out_sum = operands.d_out_sums[output], mean_gradient = d_out_sum / pixels;
  const auto load_centered = [&](int i, float(&centered)[kProductColumns]) {
    float sums[kProductColumns];
    load<kProductColumns>(operands.products + first + i, centered);
    load<kProductColumns>(operands.sums + i, sums);
#pragma unroll
    for (int c = 0; c < kProductColumns; ++c) centered[c] -= mean_gradient * sums[c];
  };
  float product = 0, largest = 0;
#pragma unroll 4
  for (int i = lane * kProductColumns; i < inputs; i += 32 * kProductColumns) {
    float centered[kProductColumns], weights[kProductColumns];
    load_centered(i, centered);
    load<kProductColumns>(operands.weight + first + i, weights);
#pragma unroll
    for (int c = 0; c < kProductColumns; ++c) {
      product += weights[c] * centered[c];
      largest = fmaxf(largest, fabsf(weights[c]));
    }
  }
  const float inv_std = operands.inv_std[output];
  const float d_scale = combine_warp(product, Sum{}) * inv_std;
  const float of_gradient = operands.scale[output] * inv_std;
  largest = combine_warp(largest, Largest{});
  const float of_deviations = -of_gradient * inv_std * d_scale, of_in = of_deviations / pixels;
#pragma unroll 4
  for (int i = lane * kProductColumns; i < inputs; i += 32 * kProductColumns) {
    float centered[kProductColumns], d_weight[kProductColumns];
    load_centered(i, centered);
    load<kProductColumns>(operands.deviations + first + i, d_weight);
#pragma unroll
    for (int c = 0; c < kProductColumns; ++c)
      d_weight[c] = of_gradient * centered[c] + of_deviations * d_weight[c];
    store<kProductColumns>(as<D>(operands.d_weight) + first + i, d_weight);
  }
  if (lane > 0) return;
  operands.d_scale[output] = d_scale;
  if (operands.d_bias) operands.d_bias[output] = d_out_sum;
  into.of_in[output] = of_in;
  into.of_gradient[output] = of_gradient;
  into.bounds[output] = fabsf(of_in) * largest * largest;
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

// kRows rows of W^T diag(B) W, over a quarter of the outputs, and as many of the shift. The block reads its
// weights from the L2 cache, 4 bytes for 2 kRows FLOP, as product_norm_statistics its products: with 512
// inputs 128 blocks of 16 rows 0.025 ms. The last of the four adds what all have left, 16 bytes per element,
// and rounds it, some 3 us later. It takes the factors' part of the shift from their rows, which are their
// columns, but for a rounding.
template <typename T, int kRows>
__global__ void __launch_bounds__(kThreads)
    product_norm_factors(ProductNormShape shape, ProductBackward operands) {
  constexpr int kParts = kRows / kProductColumns;
  const int inputs = shape.inputs, thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int first_row = static_cast<int>(blockIdx.x) * kRows, split = static_cast<int>(blockIdx.y);
  const int most = (shape.outputs + kProductNormSplits - 1) / kProductNormSplits, first = split * most;
  const int outputs = min(most, shape.outputs - first);
  const ProductCoefficients from(shape, operands.workspace);
  const float* const weight = operands.weight + first * inputs;
  float* const shared = gpu::dynamic_shared<float>();
  float gradients[kProductColumns] = {};  // A w s, of the rows i % kParts
#pragma unroll 2
  for (int i = thread; i < outputs * kParts; i += kThreads) {
    const int k = i / kParts, row = i % kParts * kProductColumns;
    float of_rows[kProductColumns];
    load<kProductColumns>(weight + k * inputs + first_row + row, of_rows);
    const float of_in = from.of_in[first + k], of_gradient = from.of_gradient[first + k],
                sum = operands.d_out_sums[first + k];
#pragma unroll
    for (int c = 0; c < kProductColumns; ++c) {
      gradients[c] += rounded<T>(of_rows[c] * of_gradient, operands.tf32) * sum;
      of_rows[c] *= of_in;
    }
    store<kProductColumns>(shared + k * kRows + row, of_rows);
  }
  __syncthreads();
  multiply_rows<kRows>(shared, weight, outputs, inputs, [](int, float(&)[kProductColumns]) {});
  float* const partials = from.partials + first_row * inputs;
  float* const of_shift = from.partials + inputs * inputs + first_row;
  const int of_split = (inputs + 1) * inputs;
  for (int i = thread * kProductColumns; i < kRows * inputs; i += kThreads * kProductColumns) {
    float sums[kProductColumns];
    sum_sets<kRows>(shared, inputs, i, sums);
    store<kProductColumns>(partials + split * of_split + i, sums);
  }
  __syncthreads();
  store<kProductColumns>(shared + thread * kProductColumns, gradients);
  __syncthreads();
  for (int row = thread / 32; row < kRows; row += kThreads / 32) {
    float sum = 0;
    for (int i = lane; i < kThreads / kParts; i += 32) sum += shared[i * kRows + row];
    sum = combine_warp(sum, Sum{});
    if (lane == 0) of_shift[split * of_split + row] = sum;
  }
  if (!is_last_block(from.counters + blockIdx.x, kProductNormSplits)) return;
  float bound = 0;
#pragma unroll 8
  for (int k = thread; k < shape.outputs; k += kThreads) bound += from.bounds[k];
  bound = combine_block(bound, Sum{});
  const float power = std::is_same_v<T, float> ? 1 : power_for(bound);
  for (int row = thread / 32; row < kRows; row += kThreads / 32) {
    float of_in = 0;
#pragma unroll 2
    for (int i = lane * kProductColumns; i < inputs; i += 32 * kProductColumns) {
      float totals[kProductColumns] = {}, in_sums[kProductColumns];
#pragma unroll
      for (int other = 0; other < kProductNormSplits; ++other) {
        float sums[kProductColumns];
        load_from_l2(partials + other * of_split + row * inputs + i, sums);
#pragma unroll
        for (int c = 0; c < kProductColumns; ++c) totals[c] += sums[c];
      }
      load<kProductColumns>(operands.sums + i, in_sums);
#pragma unroll
      for (int c = 0; c < kProductColumns; ++c) {
        totals[c] = rounded<T>(totals[c] * power, operands.tf32);
        of_in += totals[c] * in_sums[c];
      }
      store<kProductColumns>(as<T>(operands.factors) + (first_row + row) * inputs + i, totals);
    }
    of_in = combine_warp(of_in, Sum{}) / power;
    if (lane > 0) continue;
    for (int other = 0; other < kProductNormSplits; ++other)
      of_in += gpu::load_one_from_l2(of_shift + other * of_split + row);
    operands.shift[first_row + row] = -of_in / static_cast<float>(shape.pixels);
  }
  if (first_row == 0 && thread == 0) operands.shift[inputs] = 1 / power;
}

// Calls use(rows) with a block's rows as std::integral_constant: as many as leave about a block for each of
// an H100's 132 multiprocessors.
template <typename Use>
void with_rows(int rows, const Use& use) {
  if (rows >= 2048)
    use(std::integral_constant<int, 16>{});
  else if (rows >= 1024)
    use(std::integral_constant<int, 8>{});
  else
    use(std::integral_constant<int, 4>{});
}

}  // namespace

void launch_product_norm_statistics(const ProductNormShape& shape, DType dtype,
                                    const ProductStatistics& operands, const NormStatistics& into,
                                    cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    with_rows(shape.outputs, [&](auto rows) {
      gpu::launch(product_norm_statistics<T, rows>, dim3(blocks_for(shape.outputs, rows)), dim3(kThreads),
                  sizeof(float) * static_cast<std::size_t>(kRowFloats<rows> + shape.inputs + rows), stream,
                  shape, operands, into);
    });
  });
}

void launch_product_norm_backward(const ProductNormShape& shape, DType dtype, const ProductBackward& operands,
                                  cudaStream_t stream) {
  with_type_of(operands.d_weight_dtype, [&]<typename T>(T) {
    gpu::launch(product_norm_gradients<T>, dim3(blocks_for(shape.outputs, kThreads / 32)), dim3(kThreads), 0,
                stream, shape, operands);
  });
  with_type_of(dtype, [&]<typename T>(T) {
    with_rows(shape.inputs * kProductNormSplits, [&](auto rows) {
      gpu::launch(product_norm_factors<T, rows>, dim3(blocks_for(shape.inputs, rows), kProductNormSplits),
                  dim3(kThreads), sizeof(float) * kRowFloats<rows>, stream, shape, operands);
    });
  });
}

}  // namespace plumb::cuda
