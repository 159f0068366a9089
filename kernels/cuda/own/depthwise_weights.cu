#include "kernels/cuda/own/depthwise_tile.h"
#include "kernels/cuda/own/finish_sums.h"
#include "kernels/cuda/own/reduce.h"

namespace plumb::cuda {
namespace {

// A thread's gradient of a 3x3 weight: 9 taps of its channels. An odd number of words, so that adjacent
// threads' sums spread over all banks of shared memory.
template <int kCount>
struct TapSums {
  float at[9][kCount] = {};
  float unused = 0;

  __device__ void merge(const TapSums& other) {
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) at[tap][i] += other.at[tap][i];
    }
  }
  // Adds taps of row `tap_row` over an input row's three pixels under d_out.
  template <typename T>
  __device__ void add(int tap_row, const Elements<T, kCount> (&pixels)[3], const Elements<T, kCount>& d_out) {
    float gradient[kCount], value[kCount];
    convert(d_out, gradient);
#pragma unroll
    for (int tap = 0; tap < 3; ++tap) {
      convert(pixels[tap], value);
#pragma unroll
      for (int i = 0; i < kCount; ++i) at[tap_row * 3 + tap][i] += value[i] * gradient[i];
    }
  }
};

// Adds one column of an image's output at stride 1. Each input row is read once; d_out's rows around it stay
// in registers. Each row is loaded one step ahead; 9 multiply-adds per element don't hide the latency
// otherwise.
template <typename T>
__device__ void add_column(const Image<T>& in, const Image<T>& d_out, int x, TapSums<kPack<T>>& sums) {
  Elements<T, kPack<T>> pixels[3], pixels_ahead[3], before{}, own[1], next[1], ahead[1];
  d_out.row(0, x, own);
  d_out.row(1, x, next);
  in.row(0, x - 1, pixels);
  for (int row = 0; row < d_out.height; ++row) {
    d_out.row(row + 2, x, ahead);
    in.row(row + 1, x - 1, pixels_ahead);
    sums.add(1, pixels, own[0]);
    sums.add(2, pixels, before);
    sums.add(0, pixels, next[0]);
    before = own[0];
    own[0] = next[0];
    next[0] = ahead[0];
#pragma unroll
    for (int i = 0; i < 3; ++i) pixels[i] = pixels_ahead[i];
  }
}

// The same at stride 2: two input rows per row of d_out.
template <typename T>
__device__ void add_column_at_stride_2(const Image<T>& in, const Image<T>& d_out, int x,
                                       TapSums<kPack<T>>& sums) {
  Elements<T, kPack<T>> pixels[3], own[1], next[1];
  d_out.row(0, x, own);
  for (int row = 0; row < d_out.height; ++row) {
    d_out.row(row + 1, x, next);
    in.row(2 * row, 2 * x - 1, pixels);
    sums.add(1, pixels, own[0]);
    in.row(2 * row + 1, 2 * x - 1, pixels);
    sums.add(2, pixels, own[0]);
    sums.add(0, pixels, next[0]);
    own[0] = next[0];
  }
}

// Block (tile, b) sums the 9 taps of its channels over its columns of images and writes [9, c] partial sums.
// A thread has 16 bytes of channels and keeps its sums in registers. Per d_out element: reads one, and
// stride^2 input elements (a column's two neighbors come from the caches); half precision: 4 bytes at stride
// 1, 10 at stride 2. 9 multiply-adds: bound by memory.
template <typename T, int kStride>
__global__ void __launch_bounds__(kDepthwiseThreads, 3)
    weights_3x3(WindowShape shape, DepthwisePartition partition, const T* in, const T* d_out,
                float* partials) {
  constexpr int kCount = kPack<T>;
  const std::int64_t channel = std::int64_t{blockIdx.x * blockDim.x + threadIdx.x} * kCount;
  const std::int64_t first = blockIdx.y * partition.items_per_block;
  const std::int64_t end = min(first + partition.items_per_block, partition.items);
  TapSums<kCount> sums;
  if (channel < shape.c) {
    for (std::int64_t item = first + threadIdx.y; item < end; item += blockDim.y) {
      const std::int64_t image = item / shape.out_w;
      const Image<T> images(in, shape.h, shape.w, shape.c, channel, image);
      const Image<T> gradients(d_out, shape.out_h, shape.out_w, shape.c, channel, image);
      const auto x = static_cast<int>(item % shape.out_w);
      if constexpr (kStride == 1)
        add_column(images, gradients, x, sums);
      else
        add_column_at_stride_2(images, gradients, x, sums);
    }
  }
  merge_rows(sums);
  if (threadIdx.y != 0 || channel >= shape.c) return;
#pragma unroll
  for (int tap = 0; tap < 9; ++tap)
    store<kCount>(partials + (std::int64_t{blockIdx.y} * 9 + tap) * shape.c + channel, sums.at[tap]);
}

// Any window: block (tile, b) sums kDepthwiseThreads taps of 16 bytes of channels over its pixels of d_out. A
// tap beyond the border adds nothing but reads the nearest pixel in the image, so that no load waits for a
// branch. Per pixel of d_out and tap: reads an element of both, one of them from memory if windows don't
// overlap. Over a whole 7x7 image in half precision: 2 bytes per input element, bound by memory; otherwise
// bound by the caches.
template <typename T>
__global__ void weights_any(WindowShape shape, DepthwisePartition partition, const T* in, const T* d_out,
                            float* partials) {
  constexpr int kCount = kPack<T>;
  const std::int64_t groups = shape.c / kCount;
  const std::int64_t lane = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (lane >= groups * shape.kernel * shape.kernel) return;
  const std::int64_t channel = lane % groups * kCount, tap = lane / groups;
  const int row = static_cast<int>(tap) / shape.kernel - shape.padding,
            column = static_cast<int>(tap) % shape.kernel - shape.padding;
  const std::int64_t first = blockIdx.y * partition.items_per_block;
  const std::int64_t end = min(first + partition.items_per_block, partition.items);
  float sum[kCount] = {};
#pragma unroll 4
  for (std::int64_t item = first; item < end; ++item) {
    const std::int64_t line = item / shape.out_w;  // over all images' output
    const std::int64_t image = line / shape.out_h;
    const auto y = static_cast<int>(line - image * shape.out_h) * shape.stride + row;
    const auto x = static_cast<int>(item - line * shape.out_w) * shape.stride + column;
    const int near_y = min(max(y, 0), static_cast<int>(shape.h) - 1);
    const int near_x = min(max(x, 0), static_cast<int>(shape.w) - 1);
    float value[kCount], gradient[kCount];
    load<kCount>(in + ((image * shape.h + near_y) * shape.w + near_x) * shape.c + channel, value);
    load<kCount>(d_out + item * shape.c + channel, gradient);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum[i] += y == near_y && x == near_x ? value[i] * gradient[i] : 0.0F;
  }
  store<kCount>(partials + (std::int64_t{blockIdx.y} * shape.kernel * shape.kernel + tap) * shape.c + channel,
                sum);
}

}  // namespace

void launch_depthwise_backward_weights(DType dtype, const WindowShape& shape, const std::byte* in,
                                       const std::byte* d_out, float* partials, std::byte* d_weight,
                                       cudaStream_t stream) {
  const DepthwisePartition partition = partition_depthwise(shape, dtype);
  const dim3 grid(static_cast<unsigned>(partition.tiles), static_cast<unsigned>(partition.blocks));
  const dim3 block(static_cast<unsigned>(partition.lanes), static_cast<unsigned>(partition.rows));
  const std::int64_t weights = shape.taps() * shape.c;
  with_type_of(dtype, [&]<typename T>(T) {
    if (is_depthwise_3x3(shape)) {
      const auto kernel = shape.stride == 1 ? weights_3x3<T, 1> : weights_3x3<T, 2>;
      gpu::launch(kernel, grid, block, merge_bytes<TapSums<kPack<T>>>(block), stream, shape, partition,
                  as<T>(in), as<T>(d_out), partials);
    } else {
      gpu::launch(weights_any<T>, grid, block, 0, stream, shape, partition, as<T>(in), as<T>(d_out),
                  partials);
    }
    launch_finish_sums(partials, partition.blocks, weights, as<T>(d_weight), stream);
  });
}

}  // namespace plumb::cuda
