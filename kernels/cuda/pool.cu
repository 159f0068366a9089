#include "kernels/cuda/elements.h"
#include "kernels/cuda/pool.h"

namespace plumb::cuda {
namespace {

constexpr int kPoolThreads = 128;

// A thread's pixel and its 16 bytes of channels in a pooling kernel: row blockIdx.y of image blockIdx.z.
template <typename T>
struct Place {
  std::int64_t channel = 0, x = 0;
  __device__ explicit Place(std::int64_t channels) {
    const unsigned index = blockIdx.x * kPoolThreads + threadIdx.x;
    const auto groups = static_cast<unsigned>(channels / kPack<T>);
    channel = std::int64_t{index % groups} * kPack<T>;
    x = index / groups;
  }
};

__device__ inline int clamped(int at, int extent) {
  return at < 0 ? 0 : at < extent ? at : extent - 1;
}

// Block (i, y, n) computes 128 x 16 bytes of row y of output n; kKernel 0 takes the shape's kernel. A
// place in the padding reads the adjacent pixel, which is in the window, too, so that no load waits for a
// branch. Per output element: reads stride^2 input elements from memory (windows overlap in the cache),
// writes one and one byte; 3x3 stride 2 in half precision: 8 + 2 + 1 bytes. Bound by memory.
template <typename T, int kKernel>
__global__ void max_pool_forward(PoolShape shape, const T* in, const float* scale_shift, T* out,
                                 std::uint8_t* argmax) {
  constexpr int kCount = kPack<T>;
  const Place<T> at(shape.c);
  if (at.x >= shape.out_w) return;
  [[maybe_unused]] constexpr int kUnroll = kKernel > 0 ? kKernel : 1;
  const int kernel = kKernel > 0 ? kKernel : shape.kernel;
  const int top = static_cast<int>(blockIdx.y) * shape.stride - shape.padding;
  const int left = static_cast<int>(at.x) * shape.stride - shape.padding;
  in += blockIdx.z * shape.h * shape.w * shape.c + at.channel;
  float scale[kCount], shift[kCount];
  if (scale_shift) {
    load<kCount>(scale_shift + at.channel, scale);
    load<kCount>(scale_shift + shape.c + at.channel, shift);
  }
  float largest[kCount];
  Elements<std::uint8_t, kCount> winner{};
#pragma unroll
  for (int i = 0; i < kCount; ++i) largest[i] = -INFINITY;
#pragma unroll kUnroll
  for (int row = 0; row < kernel; ++row) {
    const int y = clamped(top + row, static_cast<int>(shape.h));
#pragma unroll kUnroll
    for (int column = 0; column < kernel; ++column) {
      const int x = clamped(left + column, static_cast<int>(shape.w));
      const int place = (y - top) * kernel + x - left;
      float values[kCount];
      load<kCount>(in + (y * shape.w + x) * shape.c, values);
      if (scale_shift) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          values[i] = scale[i] * values[i] + shift[i];
          values[i] = values[i] <= 0 ? 0 : values[i];
        }
      }
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const bool is_nan = values[i] != values[i];
        const bool wins = (row == 0 && column == 0) || values[i] > largest[i] || is_nan;
        largest[i] = wins ? values[i] : largest[i];
        winner.at[i] = wins ? static_cast<std::uint8_t>(place) : winner.at[i];
      }
    }
  }
  const std::int64_t to =
      ((std::int64_t{blockIdx.z} * shape.out_h + blockIdx.y) * shape.out_w + at.x) * shape.c + at.channel;
  store<kCount>(out + to, largest);
  *reinterpret_cast<Elements<std::uint8_t, kCount>*>(argmax + to) = winner;
}

// Block (i, y, n) computes 128 x 16 bytes of row y of the input's gradient: each checks the windows
// over it (1, 2 or 4 for 3x3 stride 2) for those it won. Per d_in element: reads 1 / stride^2 elements of
// each d_out and as many bytes of argmax from memory, writes one; 3x3 stride 2 in half precision: 0.75 (1.25
// with two) + 2 bytes. Bound by memory.
template <typename T>
__global__ void max_pool_backward(PoolShape shape, const T* d_out, const T* second_d_out,
                                  const std::uint8_t* argmax, T* d_in) {
  constexpr int kCount = kPack<T>;
  const Place<T> at(shape.c);
  if (at.x >= shape.w) return;
  const int y = static_cast<int>(blockIdx.y) + shape.padding, x = static_cast<int>(at.x) + shape.padding;
  const int first_row = y < shape.kernel ? 0 : (y - shape.kernel) / shape.stride + 1;
  const int first_column = x < shape.kernel ? 0 : (x - shape.kernel) / shape.stride + 1;
  float sum[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum[i] = 0;
  for (int row = first_row; row * shape.stride <= y && row < shape.out_h; ++row) {
    for (int column = first_column; column * shape.stride <= x && column < shape.out_w; ++column) {
      const int place = (y - row * shape.stride) * shape.kernel + x - column * shape.stride;
      const std::int64_t from =
          ((std::int64_t{blockIdx.z} * shape.out_h + row) * shape.out_w + column) * shape.c + at.channel;
      const auto winner = *reinterpret_cast<const Elements<std::uint8_t, kCount>*>(argmax + from);
      float values[kCount], more[kCount] = {};
      load<kCount>(d_out + from, values);
      if (second_d_out) load<kCount>(second_d_out + from, more);
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum[i] += winner.at[i] == place ? values[i] + more[i] : 0.0F;
    }
  }
  store<kCount>(
      d_in + ((std::int64_t{blockIdx.z} * shape.h + blockIdx.y) * shape.w + at.x) * shape.c + at.channel,
      sum);
}

// Block (i, n) averages 128 groups of 16 bytes of channels of image n; a thread goes down its pixels in
// order. Reads each element once, writes 1 / pixels of that: 2 bytes per element in half precision. Bound by
// memory.
template <typename T>
__global__ void average_forward(const T* in, T* out, std::int64_t pixels, std::int64_t groups) {
  constexpr int kCount = kPack<T>;
  const std::int64_t group = std::int64_t{blockIdx.x} * kPoolThreads + threadIdx.x;
  if (group >= groups) return;
  in += (blockIdx.y * pixels * groups + group) * kCount;
  float sum[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum[i] = 0;
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
    float values[kCount];
    load<kCount>(in + pixel * groups * kCount, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum[i] += values[i];
  }
  const float share = 1.0F / static_cast<float>(pixels);
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum[i] *= share;
  store<kCount>(out + (blockIdx.y * groups + group) * kCount, sum);
}

// Block (i, n) spreads 128 groups of 16 bytes of channels of image n. Writes each element once, reads 1 /
// pixels of that: 2 bytes per element in half precision. Bound by memory.
template <typename T>
__global__ void average_backward(const T* d_out, T* d_in, std::int64_t pixels, std::int64_t groups) {
  constexpr int kCount = kPack<T>;
  const std::int64_t group = std::int64_t{blockIdx.x} * kPoolThreads + threadIdx.x;
  if (group >= groups) return;
  float values[kCount];
  load<kCount>(d_out + (blockIdx.y * groups + group) * kCount, values);
  const float share = 1.0F / static_cast<float>(pixels);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] *= share;
  d_in += (blockIdx.y * pixels * groups + group) * kCount;
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) store<kCount>(d_in + pixel * groups * kCount, values);
}

dim3 grid_of(std::int64_t n, std::int64_t rows, std::int64_t threads_per_row) {
  return dim3(blocks_for(threads_per_row, kPoolThreads), static_cast<unsigned>(rows),
              static_cast<unsigned>(n));
}

}  // namespace

void launch_max_pool_forward(DType dtype, const PoolShape& shape, const std::byte* in,
                             const float* scale_shift, std::byte* out, std::uint8_t* argmax,
                             cudaStream_t stream) {
  with_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    const auto kernel = shape.kernel == 3 ? max_pool_forward<T, 3> : max_pool_forward<T, 0>;
    gpu::launch(kernel, grid_of(shape.n, shape.out_h, shape.out_w * shape.c / kPack<T>), kPoolThreads, 0,
                stream, shape, as<T>(in), scale_shift, as<T>(out), argmax);
  });
}

void launch_max_pool_backward(DType dtype, const PoolShape& shape, const std::byte* d_out,
                              const std::byte* second_d_out, const std::uint8_t* argmax, std::byte* d_in,
                              cudaStream_t stream) {
  with_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    gpu::launch(max_pool_backward<T>, grid_of(shape.n, shape.h, shape.w * shape.c / kPack<T>), kPoolThreads,
                0, stream, shape, as<T>(d_out), as<T>(second_d_out), argmax, as<T>(d_in));
  });
}

void launch_average_forward(DType dtype, const std::byte* in, std::byte* out, std::int64_t n,
                            std::int64_t pixels, std::int64_t c, cudaStream_t stream) {
  with_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    gpu::launch(average_forward<T>, grid_of(1, n, c / kPack<T>), kPoolThreads, 0, stream, as<T>(in),
                as<T>(out), pixels, c / kPack<T>);
  });
}

void launch_average_backward(DType dtype, const std::byte* d_out, std::byte* d_in, std::int64_t n,
                             std::int64_t pixels, std::int64_t c, cudaStream_t stream) {
  with_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    gpu::launch(average_backward<T>, grid_of(1, n, c / kPack<T>), kPoolThreads, 0, stream, as<T>(d_out),
                as<T>(d_in), pixels, c / kPack<T>);
  });
}

}  // namespace plumb::cuda
