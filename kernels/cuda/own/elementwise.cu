#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/elementwise.h"

namespace plumb::cuda {
namespace {

// pass(integral_constant n, offset) for a thread's n elements from `offset` on: all of them, or one by one at
// the end of a tensor.
template <typename Pass>
__device__ void with_elements(std::int64_t left, const Pass& pass) {
  if (left >= kPerThread) return pass(std::integral_constant<int, kPerThread>{}, 0);
#pragma unroll 1
  for (std::int64_t offset = 0; offset < left; ++offset) pass(std::integral_constant<int, 1>{}, offset);
}

// A block adds 2048 elements. Reads 8 and writes 4 bytes per element in f32, 4 and 2 in a half type; bound by
// memory: nothing is read twice.
template <typename T>
__global__ void accumulate(T* into, const T* from, std::int64_t count) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kPerThread;
  if (first >= count) return;
  with_elements(count - first, [&](auto elements, std::int64_t offset) {
    float sum[elements], more[elements];
    load(into + first + offset, sum);
    load(from + first + offset, more);
#pragma unroll
    for (int i = 0; i < elements; ++i) sum[i] += more[i];
    store(into + first + offset, sum);
  });
}

// A block converts 2048 elements. Reads and writes each element once, 6 bytes between f32 and a half type;
// bound by memory.
template <typename From, typename Into>
__global__ void cast(const From* from, Into* into, std::int64_t count, float scale) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kPerThread;
  if (first >= count) return;
  with_elements(count - first, [&](auto elements, std::int64_t offset) {
    float values[elements];
    load(from + first + offset, values);
#pragma unroll
    for (int i = 0; i < elements; ++i) values[i] *= scale;
    store(into + first + offset, values);
  });
}

constexpr int kColumns = 32;     // per block: one warp side by side
constexpr int kRowsAtOnce = 16;  // per block: its warps, each with every 16th row

// A block sums 32 columns over all rows: warps go down the rows, then combine in shared memory in a fixed
// order. Reads each element once (2 or 4 bytes), 64 or 128 bytes per warp and access. The matrices are small
// (batch x classes), so launch latency costs as much as memory traffic.
template <typename T>
__global__ void column_sums(const T* matrix, float* sums, std::int64_t rows, std::int64_t columns) {
  __shared__ float partial[kRowsAtOnce][kColumns];
  const std::int64_t column = std::int64_t{blockIdx.x} * kColumns + threadIdx.x;
  float sum = 0;
  if (column < columns) {
    for (std::int64_t row = threadIdx.y; row < rows; row += kRowsAtOnce)
      sum += to_float(matrix[row * columns + column]);
  }
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int other = 1; other < kRowsAtOnce; ++other) sum += partial[other][threadIdx.x];
  sums[column] = sum;
}

// Block (p, n) packs 256 pixels of image n. Reads 3 bytes per pixel, a byte at a time but side by side with
// its neighbors', and writes 8 to 16: bound by memory. Its first thread copies the label.
template <typename T, int kHeld>
__global__ void pack_batch(StagedBatch staged, Normalization normalization, const State* state, T* images,
                           std::int32_t* labels, std::int64_t pixels) {
  const std::int64_t image = static_cast<std::int64_t>(state->step.iteration % 2) * gridDim.y + blockIdx.y;
  if (blockIdx.x == 0 && threadIdx.x == 0) labels[blockIdx.y] = staged.labels[image];
  const std::int64_t pixel = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (pixel >= pixels) return;
  const std::uint8_t* levels = staged.pixels + (image * pixels + pixel) * 3;
  float values[kHeld] = {};
#pragma unroll
  for (int c = 0; c < 3; ++c)
    values[c] = static_cast<float>(levels[c]) * normalization.factor[c] + normalization.offset[c];
  const std::int64_t into = blockIdx.y;
  store(images + (into * pixels + pixel) * kHeld, values);
}

}  // namespace

void launch_accumulate(DType dtype, std::byte* into, const std::byte* from, std::int64_t count,
                       cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    gpu::launch(accumulate<T>, blocks_for(count, kThreads * kPerThread), kThreads, 0, stream, as<T>(into),
                as<T>(from), count);
  });
}

void launch_cast(DType from_dtype, const std::byte* from, DType into_dtype, std::byte* into,
                 std::int64_t count, float scale, cudaStream_t stream) {
  with_type_of(from_dtype, [&]<typename From>(From) {
    with_type_of(into_dtype, [&]<typename Into>(Into) {
      gpu::launch(cast<From, Into>, blocks_for(count, kThreads * kPerThread), kThreads, 0, stream,
                  as<From>(from), as<Into>(into), count, scale);
    });
  });
}

void launch_column_sums(DType dtype, const std::byte* matrix, float* sums, std::int64_t rows,
                        std::int64_t columns, cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    gpu::launch(column_sums<T>, blocks_for(columns, kColumns), dim3(kColumns, kRowsAtOnce), 0, stream,
                as<T>(matrix), sums, rows, columns);
  });
}

void launch_pack_batch(const StagedBatch& staged, const Normalization& normalization, const State* state,
                       const ImageBatch& batch, cudaStream_t stream) {
  with_type_of(batch.dtype, [&]<typename T>(T) {
    const std::int64_t pixels = batch.shape.h * batch.shape.w;
    const dim3 grid(blocks_for(pixels, kThreads), static_cast<unsigned>(batch.shape.n));
    const auto kernel = batch.held_channels == 4 ? pack_batch<T, 4> : pack_batch<T, kPack<T>>;
    gpu::launch(kernel, grid, kThreads, 0, stream, staged, normalization, state, as<T>(batch.images),
                batch.labels, pixels);
  });
}

}  // namespace plumb::cuda
