#include "kernels/cuda/elements.h"
#include "kernels/cuda/pool.h"

namespace plumb::cuda {
namespace {

constexpr int kPoolThreads = 128;

// Elements that a thread accesses at once: 16 bytes of channels, or one pixel of a plane.
template <typename Of>
inline constexpr int kGroup = kHasPlanes<Of> ? kInPlane<Of> : kPack<Of>;

// A thread's pixel and channels in a max pool: row blockIdx.y of image blockIdx.z. Adjacent threads have
// adjacent elements.
template <typename Of>
struct Place {
  std::int64_t channel = 0, x = 0;
  __device__ Place(std::int64_t channels, std::int64_t width) {
    const unsigned index = blockIdx.x * kPoolThreads + threadIdx.x;
    if constexpr (kHasPlanes<Of>) {
      channel = index / static_cast<unsigned>(width);
      x = channel < channels ? index % static_cast<unsigned>(width) : width;
    } else {
      const auto groups = static_cast<unsigned>(channels / kGroup<Of>);
      channel = std::int64_t{index % groups} * kGroup<Of>;
      x = index / groups;
    }
  }
};

// Order of a max pool's tensor.
template <typename Of>
struct Images {
  std::int64_t h, w, c;
  __device__ std::int64_t at(std::int64_t n, std::int64_t y, std::int64_t x, std::int64_t channel) const {
    if constexpr (kHasPlanes<Of>) return ((n * c + channel) * h + y) * w + x;
    return ((n * h + y) * w + x) * c + channel;
  }
};

__device__ inline int clamped(int at, int extent) {
  return at < 0 ? 0 : at < extent ? at : extent - 1;
}

// Block (i, y, n) computes 128 groups of row y of output n; kKernel 0 takes the shape's kernel. A place in
// the padding reads the adjacent pixel, which is in the window, too, so that no load waits for a branch. Per
// output element: reads stride^2 input elements from memory (windows overlap in the cache), writes one (two
// with winners) and one byte; 3x3 stride 2 in half precision: 8 + 2 (4) + 1 bytes. Bound by memory.
template <typename Of, int kKernel>
__global__ void max_pool_forward(PoolShape shape, const Element<Of>* in, const float* scale_shift,
                                 Element<Of>* out, std::uint8_t* argmax, Element<Of>* winners) {
  constexpr int kCount = kGroup<Of>;
  const Place<Of> at(shape.c, shape.out_w);
  const Images<Of> input{shape.h, shape.w, shape.c}, output{shape.out_h, shape.out_w, shape.c};
  if (at.x >= shape.out_w) return;
  [[maybe_unused]] constexpr int kUnroll = kKernel > 0 ? kKernel : 1;
  const int kernel = kKernel > 0 ? kKernel : shape.kernel;
  const int top = static_cast<int>(blockIdx.y) * shape.stride - shape.padding;
  const int left = static_cast<int>(at.x) * shape.stride - shape.padding;
  in += input.at(blockIdx.z, 0, 0, at.channel);
  float scale[kCount], shift[kCount];
  if (scale_shift) {
    load<kCount>(scale_shift + at.channel, scale);
    load<kCount>(scale_shift + shape.c + at.channel, shift);
  }
  float largest[kCount], won[kCount] = {};
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
      float raw[kCount], values[kCount];
      load<kCount>(in + input.at(0, y, x, 0), raw);
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = scale_shift ? scale[i] * raw[i] + shift[i] : raw[i];
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const bool is_nan = values[i] != values[i];
        const bool wins = (row == 0 && column == 0) || values[i] > largest[i] || is_nan;
        largest[i] = wins ? values[i] : largest[i];
        won[i] = wins ? raw[i] : won[i];
        winner.at[i] = wins ? static_cast<std::uint8_t>(place) : winner.at[i];
      }
    }
  }
  const std::int64_t to = output.at(blockIdx.z, blockIdx.y, at.x, at.channel);
  if (scale_shift) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) largest[i] = largest[i] <= 0 ? 0 : largest[i];
  }
  store<kCount>(out + to, largest);
  if (winners) {
    store<kCount>(winners + to, won);
#pragma unroll
    for (int i = 0; i < kCount; ++i) winner.at[i] = largest[i] <= 0 ? kNoWinner : winner.at[i];
  }
  *reinterpret_cast<Elements<std::uint8_t, kCount>*>(argmax + to) = winner;
}

// Block (i, y, n) computes 128 groups of row y of the input's gradient: each checks the windows over it (1, 2
// or 4 for 3x3 stride 2) for those it won. Per d_in element: reads 1 / stride^2 elements of each d_out and as
// many bytes of argmax from memory, writes one; 3x3 stride 2 in half precision: 0.75 (1.25 with two) + 2
// bytes. Bound by memory.
template <typename Of>
__global__ void max_pool_backward(PoolShape shape, const Element<Of>* d_out, const Element<Of>* second_d_out,
                                  const std::uint8_t* argmax, Element<Of>* d_in) {
  constexpr int kCount = kGroup<Of>;
  const Place<Of> at(shape.c, shape.w);
  const Images<Of> input{shape.h, shape.w, shape.c}, output{shape.out_h, shape.out_w, shape.c};
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
      const std::int64_t from = output.at(blockIdx.z, row, column, at.channel);
      const auto winner = *reinterpret_cast<const Elements<std::uint8_t, kCount>*>(argmax + from);
      float values[kCount], more[kCount] = {};
      load<kCount>(d_out + from, values);
      if (second_d_out) load<kCount>(second_d_out + from, more);
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum[i] += winner.at[i] == place ? values[i] + more[i] : 0.0F;
    }
  }
  store<kCount>(d_in + input.at(blockIdx.z, blockIdx.y, at.x, at.channel), sum);
}

// The pixels of a thread's channels in image n of an average pool.
struct Pixels {
  std::int64_t first, stride;
};
template <typename Of>
__device__ Pixels pixels_of(std::int64_t n, std::int64_t group, std::int64_t pixels, std::int64_t groups) {
  if constexpr (kHasPlanes<Of>) return {(n * groups + group) * pixels, 1};
  return {(n * pixels * groups + group) * kGroup<Of>, groups * kGroup<Of>};
}

// Block (i, n) averages 128 groups of channels of image n; a thread goes down its pixels in order. Reads each
// element once, writes 1 / pixels of that: 2 bytes per element in half precision. Bound by memory. In NCHW
// adjacent threads read 4 bytes of different sectors, the rest of which they take from the caches.
template <typename Of>
__global__ void average_forward(const Element<Of>* in, Element<Of>* out, std::int64_t pixels,
                                std::int64_t groups) {
  constexpr int kCount = kGroup<Of>;
  const std::int64_t group = std::int64_t{blockIdx.x} * kPoolThreads + threadIdx.x;
  if (group >= groups) return;
  const Pixels from = pixels_of<Of>(blockIdx.y, group, pixels, groups);
  in += from.first;
  float sum[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum[i] = 0;
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
    float values[kCount];
    load<kCount>(in + pixel * from.stride, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum[i] += values[i];
  }
  const float share = 1.0F / static_cast<float>(pixels);
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum[i] *= share;
  store<kCount>(out + (blockIdx.y * groups + group) * kCount, sum);
}

// Block (i, n) spreads 128 groups of channels of image n. Writes each element once, reads 1 / pixels of that:
// 2 bytes per element in half precision. Bound by memory; in NCHW as above.
template <typename Of>
__global__ void average_backward(const Element<Of>* d_out, Element<Of>* d_in, std::int64_t pixels,
                                 std::int64_t groups) {
  constexpr int kCount = kGroup<Of>;
  const std::int64_t group = std::int64_t{blockIdx.x} * kPoolThreads + threadIdx.x;
  if (group >= groups) return;
  float values[kCount];
  load<kCount>(d_out + (blockIdx.y * groups + group) * kCount, values);
  const float share = 1.0F / static_cast<float>(pixels);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] *= share;
  const Pixels to = pixels_of<Of>(blockIdx.y, group, pixels, groups);
  d_in += to.first;
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) store<kCount>(d_in + pixel * to.stride, values);
}

dim3 grid_of(std::int64_t n, std::int64_t rows, std::int64_t threads_per_row) {
  return dim3(blocks_for(threads_per_row, kPoolThreads), static_cast<unsigned>(rows),
              static_cast<unsigned>(n));
}

}  // namespace

void launch_max_pool_forward(DType dtype, const PoolShape& shape, const std::byte* in,
                             const float* scale_shift, std::byte* out, std::uint8_t* argmax,
                             std::byte* winners, cudaStream_t stream) {
  with_layout(shape.layout, dtype, [&]<typename Of>(Of) {
    const auto kernel = shape.kernel == 3 ? max_pool_forward<Of, 3> : max_pool_forward<Of, 0>;
    gpu::launch(kernel, grid_of(shape.n, shape.out_h, shape.out_w * shape.c / kGroup<Of>), kPoolThreads, 0,
                stream, shape, as<Element<Of>>(in), scale_shift, as<Element<Of>>(out), argmax,
                as<Element<Of>>(winners));
  });
}

void launch_max_pool_backward(DType dtype, const PoolShape& shape, const std::byte* d_out,
                              const std::byte* second_d_out, const std::uint8_t* argmax, std::byte* d_in,
                              cudaStream_t stream) {
  with_layout(shape.layout, dtype, [&]<typename Of>(Of) {
    using T = Element<Of>;
    gpu::launch(max_pool_backward<Of>, grid_of(shape.n, shape.h, shape.w * shape.c / kGroup<Of>),
                kPoolThreads, 0, stream, shape, as<T>(d_out), as<T>(second_d_out), argmax, as<T>(d_in));
  });
}

void launch_average_forward(DType dtype, const PoolShape& shape, const std::byte* in, std::byte* out,
                            cudaStream_t stream) {
  with_layout(shape.layout, dtype, [&]<typename Of>(Of) {
    const std::int64_t groups = shape.c / kGroup<Of>;
    gpu::launch(average_forward<Of>, grid_of(1, shape.n, groups), kPoolThreads, 0, stream,
                as<Element<Of>>(in), as<Element<Of>>(out), shape.h * shape.w, groups);
  });
}

void launch_average_backward(DType dtype, const PoolShape& shape, const std::byte* d_out, std::byte* d_in,
                             cudaStream_t stream) {
  with_layout(shape.layout, dtype, [&]<typename Of>(Of) {
    const std::int64_t groups = shape.c / kGroup<Of>;
    gpu::launch(average_backward<Of>, grid_of(1, shape.n, groups), kPoolThreads, 0, stream,
                as<Element<Of>>(d_out), as<Element<Of>>(d_in), shape.h * shape.w, groups);
  });
}

}  // namespace plumb::cuda
