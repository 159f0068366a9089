#include "kernels/cuda/own/depthwise_tile.h"

namespace plumb::cuda {
namespace {

// Output rows per thread of a 3x3 kernel, which reads two or one more input row: MobileFaceNet's image
// heights are multiples of 7.
constexpr int kRowsPerThread = 7;

// Taps of a 3x3 kernel at a thread's channels, as stored. With `turned`, tap (2 - y, 2 - x) instead of (y,
// x), for backward-data at stride 1.
template <typename T>
struct Taps {
  Elements<T, kPack<T>> at[9];
  __device__ Taps(const T* weight, std::int64_t channels, bool turned) {
#pragma unroll
    for (int tap = 0; tap < 9; ++tap)
      at[tap] = *reinterpret_cast<const Elements<T, kPack<T>>*>(weight + (turned ? 8 - tap : tap) * channels);
  }
};

template <typename T, int kCount>
__device__ void add_product(const Elements<T, kCount>& weight, const float (&value)[kCount],
                            float (&sum)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum[i] += to_float(weight.at[i]) * value[i];
}

// Adds an input row to the outputs around it: sums[i] gets row kTapRows[i] of the taps, per column window.
template <int kStride, int... kTapRows, typename T, int kPixels, int kRowsHeld, int kColumns>
__device__ void add_row(const Taps<T>& taps, const Elements<T, kPack<T>> (&pixels)[kPixels],
                        float (&sums)[kRowsHeld][kColumns][kPack<T>]) {
  constexpr int kTapRow[] = {kTapRows...};
#pragma unroll
  for (int pixel = 0; pixel < kPixels; ++pixel) {
    float value[kPack<T>];
    convert(pixels[pixel], value);
#pragma unroll
    for (int row = 0; row < static_cast<int>(sizeof...(kTapRows)); ++row) {
#pragma unroll
      for (int column = 0; column < kColumns; ++column) {
        const int tap = pixel - column * kStride;
        if (tap >= 0 && tap < 3) add_product(taps.at[kTapRow[row] * 3 + tap], value, sums[row][column]);
      }
    }
  }
}

// The first row's outputs are done; shifts the others up.
template <int kRowsHeld, int kColumns, int kCount>
__device__ void move_up(float (&sums)[kRowsHeld][kColumns][kCount]) {
#pragma unroll
  for (int row = 0; row < kRowsHeld; ++row) {
#pragma unroll
    for (int column = 0; column < kColumns; ++column) {
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        sums[row][column][i] = row + 1 < kRowsHeld ? sums[row + 1][column][i] : 0.0F;
    }
  }
}

// 3x3 convolution with padding 1. Block (i, r, n) computes rows r * kRowsPerThread … of image n, a thread 16
// bytes of channels of kColumns adjacent columns. A thread reads each input row once, as 3 or 4 pixels, and
// adds it to the outputs that use it (3 at stride 1, 2 at stride 2), kept in registers. Per output element:
// reads stride^2 input elements from memory (columns and rows between blocks overlap in the caches), writes
// one; half precision: 4 bytes at stride 1, 10 at stride 2. 9 multiply-adds and 9 conversions per element:
// bound by memory, at half of the issue slots. Also serves backward-data at stride 1, with the taps turned.
template <typename T, int kStride, int kColumns>
__global__ void __launch_bounds__(kDepthwiseThreads, 3)
    convolve_3x3(WindowShape shape, const T* in, const T* weight, bool turned, T* out) {
  constexpr int kCount = kPack<T>, kPixels = 3 + (kColumns - 1) * kStride;
  const DepthwisePlace<T> at(shape.c);
  const std::int64_t x = at.x * kColumns;
  if (x >= shape.out_w) return;
  const Taps<T> taps(weight + at.channel, shape.c, turned);
  const Image<T> image(in, shape.h, shape.w, shape.c, at.channel);
  const auto first = static_cast<int>(blockIdx.y) * kRowsPerThread;
  const int end = min(first + kRowsPerThread, static_cast<int>(shape.out_h));
  T* const to = out + std::int64_t{blockIdx.z} * shape.out_h * shape.out_w * shape.c + at.channel;
  Elements<T, kCount> pixels[kPixels];
  float sums[kStride == 1 ? 3 : 2][kColumns][kCount] = {};
  const auto read = [&](int row) { image.row(row, static_cast<int>(x) * kStride - 1, pixels); };
  const auto write = [&](int row) {
#pragma unroll
    for (int column = 0; column < kColumns; ++column)
      if (x + column < shape.out_w)
        store<kCount>(to + (row * shape.out_w + x + column) * shape.c, sums[0][column]);
  };
  read(kStride * first - 1);
  add_row<kStride, 0>(taps, pixels, sums);
  if constexpr (kStride == 1) {
    read(first);
    add_row<1, 1, 0>(taps, pixels, sums);
  }
  for (int row = first; row < end; ++row) {
    if constexpr (kStride == 1) {
      read(row + 1);
      add_row<1, 2, 1, 0>(taps, pixels, sums);
    } else {
      read(2 * row);
      add_row<2, 1>(taps, pixels, sums);
      read(2 * row + 1);
      add_row<2, 2, 0>(taps, pixels, sums);
    }
    write(row);
    move_up(sums);
  }
}

// Backward-data of the 3x3 convolution with padding 1 and stride 2. Block (i, r, n) computes the 2x2 pixels
// of d_in above d_out's rows r * kRowsPerThread … of image n, a thread 16 bytes of their channels. Of the
// four pixels, one has one tap over it, two have two, one has four. Per d_in element: reads 1/4 element of
// d_out from memory, writes one; half precision: 2.5 bytes. Bound by memory.
template <typename T>
__global__ void __launch_bounds__(kDepthwiseThreads, 3)
    spread_3x3(WindowShape shape, const T* d_out, const T* weight, T* d_in) {
  constexpr int kCount = kPack<T>;
  const DepthwisePlace<T> at(shape.c);
  if (at.x >= shape.out_w) return;
  const Taps<T> taps(weight + at.channel, shape.c, false);
  const Image<T> image(d_out, shape.out_h, shape.out_w, shape.c, at.channel);
  const auto first = static_cast<int>(blockIdx.y) * kRowsPerThread, x = static_cast<int>(at.x);
  const int end = min(first + kRowsPerThread, static_cast<int>(shape.out_h));
  T* const to = d_in + std::int64_t{blockIdx.z} * shape.h * shape.w * shape.c + at.channel;
  const auto write = [&](int row, int column, const float(&sum)[kCount]) {
    if (row < shape.h && column < shape.w) store<kCount>(to + (row * shape.w + column) * shape.c, sum);
  };
  Elements<T, kCount> above[2], below[2];
  image.row(first, x, above);
  for (int row = first; row < end; ++row) {
    image.row(row + 1, x, below);
    float value[kCount], sums[4][kCount] = {};
    convert(above[0], value);
    add_product(taps.at[4], value, sums[0]);
    add_product(taps.at[5], value, sums[1]);
    add_product(taps.at[7], value, sums[2]);
    add_product(taps.at[8], value, sums[3]);
    convert(above[1], value);
    add_product(taps.at[3], value, sums[1]);
    add_product(taps.at[6], value, sums[3]);
    convert(below[0], value);
    add_product(taps.at[1], value, sums[2]);
    add_product(taps.at[2], value, sums[3]);
    convert(below[1], value);
    add_product(taps.at[0], value, sums[3]);
#pragma unroll
    for (int i = 0; i < 4; ++i) write(2 * row + i / 2, 2 * x + i % 2, sums[i]);
    above[0] = below[0];
    above[1] = below[1];
  }
}

// Any window: block (i, y, n) computes kDepthwiseThreads x 16 bytes of row y of image n. Per output
// element: reads stride^2 input elements from memory (kernel^2 from the caches) and kernel^2 weights from the
// caches, writes one. Over a whole 7x7 image: 49 elements, 100 bytes in half precision, by few threads: bound
// by memory latency.
template <typename T>
__global__ void convolve_any(WindowShape shape, const T* in, const T* weight, T* out) {
  constexpr int kCount = kPack<T>;
  const DepthwisePlace<T> at(shape.c);
  if (at.x >= shape.out_w) return;
  const auto left = static_cast<int>(at.x) * shape.stride - shape.padding;
  const int top = static_cast<int>(blockIdx.y) * shape.stride - shape.padding;
  const int first_column = max(-left, 0), end_column = min(shape.kernel, static_cast<int>(shape.w) - left);
  in += blockIdx.z * shape.h * shape.w * shape.c + at.channel;
  weight += at.channel;
  float sum[kCount] = {};
  for (int row = max(-top, 0); row < min(shape.kernel, static_cast<int>(shape.h) - top); ++row) {
#pragma unroll 4
    for (int column = first_column; column < end_column; ++column) {
      float value[kCount], factor[kCount];
      load<kCount>(in + ((top + row) * shape.w + left + column) * shape.c, value);
      load<kCount>(weight + (row * shape.kernel + column) * shape.c, factor);
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum[i] += factor[i] * value[i];
    }
  }
  store<kCount>(out + ((std::int64_t{blockIdx.z} * shape.out_h + blockIdx.y) * shape.out_w + at.x) * shape.c +
                    at.channel,
                sum);
}

// Backward-data for any window: block (i, y, n) computes kDepthwiseThreads x 16 bytes of row y of
// image n of d_in. Per element: reads 1 / stride^2 element of d_out from memory and its weights from the
// caches, writes one. Over a whole 7x7 image: 2 bytes in half precision. Bound by memory.
template <typename T>
__global__ void spread_any(WindowShape shape, const T* d_out, const T* weight, T* d_in) {
  constexpr int kCount = kPack<T>;
  const DepthwisePlace<T> at(shape.c);
  if (at.x >= shape.w) return;
  const int y = static_cast<int>(blockIdx.y) + shape.padding, x = static_cast<int>(at.x) + shape.padding;
  const int first_row = y < shape.kernel ? 0 : (y - shape.kernel) / shape.stride + 1;
  const int first_column = x < shape.kernel ? 0 : (x - shape.kernel) / shape.stride + 1;
  d_out += blockIdx.z * shape.out_h * shape.out_w * shape.c + at.channel;
  weight += at.channel;
  float sum[kCount] = {};
  for (int row = first_row; row * shape.stride <= y && row < shape.out_h; ++row) {
    for (int column = first_column; column * shape.stride <= x && column < shape.out_w; ++column) {
      const int tap = (y - row * shape.stride) * shape.kernel + x - column * shape.stride;
      float value[kCount], factor[kCount];
      load<kCount>(d_out + (row * shape.out_w + column) * shape.c, value);
      load<kCount>(weight + tap * shape.c, factor);
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum[i] += factor[i] * value[i];
    }
  }
  store<kCount>(
      d_in + ((std::int64_t{blockIdx.z} * shape.h + blockIdx.y) * shape.w + at.x) * shape.c + at.channel,
      sum);
}

dim3 grid_of(const WindowShape& shape, std::int64_t rows, std::int64_t threads_per_row) {
  return dim3(blocks_for(threads_per_row, kDepthwiseThreads), static_cast<unsigned>(rows),
              static_cast<unsigned>(shape.n));
}

// Launches convolve_3x3 over rows of `shape`'s output.
template <int kStride, int kColumns, typename T>
void launch_3x3(const WindowShape& shape, const T* in, const T* weight, bool turned, T* out,
                cudaStream_t stream) {
  const std::int64_t threads = divide_up(shape.out_w, kColumns) * (shape.c / kPack<T>);
  gpu::launch(convolve_3x3<T, kStride, kColumns>,
              grid_of(shape, divide_up(shape.out_h, kRowsPerThread), threads), kDepthwiseThreads, 0, stream,
              shape, in, weight, turned, out);
}

}  // namespace

void launch_depthwise_forward(DType dtype, const WindowShape& shape, const std::byte* in,
                              const std::byte* weight, std::byte* out, cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    if (!is_depthwise_3x3(shape))
      gpu::launch(convolve_any<T>, grid_of(shape, shape.out_h, shape.out_w * shape.c / kPack<T>),
                  kDepthwiseThreads, 0, stream, shape, as<T>(in), as<T>(weight), as<T>(out));
    else if (shape.stride == 1)
      launch_3x3<1, 2>(shape, as<T>(in), as<T>(weight), false, as<T>(out), stream);
    else
      launch_3x3<2, 1>(shape, as<T>(in), as<T>(weight), false, as<T>(out), stream);
  });
}

void launch_depthwise_backward_data(DType dtype, const WindowShape& shape, const std::byte* d_out,
                                    const std::byte* weight, std::byte* d_in, cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    if (!is_depthwise_3x3(shape))
      gpu::launch(spread_any<T>, grid_of(shape, shape.h, shape.w * shape.c / kPack<T>), kDepthwiseThreads, 0,
                  stream, shape, as<T>(d_out), as<T>(weight), as<T>(d_in));
    else if (shape.stride == 1)
      launch_3x3<1, 2>(shape, as<T>(d_out), as<T>(weight), true, as<T>(d_in), stream);
    else
      gpu::launch(spread_3x3<T>,
                  grid_of(shape, divide_up(shape.out_h, kRowsPerThread), shape.out_w * (shape.c / kPack<T>)),
                  kDepthwiseThreads, 0, stream, shape, as<T>(d_out), as<T>(weight), as<T>(d_in));
  });
}

}  // namespace plumb::cuda
