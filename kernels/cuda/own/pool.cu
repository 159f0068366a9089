#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/layers.h"
#include "kernels/cuda/plan/norm_partition.h"

namespace plumb::cuda {
namespace {

constexpr int kPoolThreads = 128;
// Threads of a max pool's block: windows of adjacent rows overlap in the caches.
constexpr int kPoolRows = 4, kPoolColumns = kPoolThreads / kPoolRows;
constexpr int kPoolBlocksAtOnce = 5;  // per multiprocessor; 96 registers hold all of a 3x3 window

// A thread's pixel and 16 bytes of channels in a max pool, in image blockIdx.z. Adjacent threads have
// adjacent elements.
template <typename T>
struct Place {
  std::int64_t channel = 0, x = 0;
  int y;
  __device__ explicit Place(std::int64_t channels)
      : y(static_cast<int>(blockIdx.y * kPoolRows + threadIdx.y)) {
    const unsigned index = blockIdx.x * kPoolColumns + threadIdx.x;
    const auto groups = static_cast<unsigned>(channels / kPack<T>);
    channel = std::int64_t{index % groups} * kPack<T>;
    x = index / groups;
  }
};

__device__ inline int clamped(int at, int extent) {
  return max(0, min(at, extent - 1));
}

// A window of a thread's channels. A place in the padding reads the adjacent pixel, which is in the window,
// too, so that no load waits for a branch.
template <typename T>
struct PoolWindow {
  const WindowShape& shape;
  const std::byte* image;  // the first pixel's channels
  int top, left;

  __device__ PoolWindow(const WindowShape& of, const Place<T>& at, const T* in)
      : shape(of),
        image(reinterpret_cast<const std::byte*>(in + blockIdx.z * of.h * of.w * of.c + at.channel)),
        top(at.y * kPooledStride - kPooledPadding),
        left(static_cast<int>(at.x) * kPooledStride - kPooledPadding) {}

  // take(elements, their place, whether it is the first) for all places.
  template <typename Take>
  __device__ void visit(const Take& take) const {
    const auto to_right = static_cast<unsigned>(sizeof(T) * shape.c);
    const auto to_below = static_cast<unsigned>(shape.w) * to_right;
#pragma unroll
    for (int row = 0; row < kPooledWindow; ++row) {
      const int y = clamped(top + row, static_cast<int>(shape.h));
#pragma unroll
      for (int column = 0; column < kPooledWindow; ++column) {
        const int x = clamped(left + column, static_cast<int>(shape.w));
        take(load_packed<kPack<T>>(as<T>(image + (y * to_below + x * to_right))),
             static_cast<unsigned>((y - top) * kPooledWindow + x - left), row == 0 && column == 0);
      }
    }
  }
};

// A 32-bit word of elements: an f32, or two of a half type, which one instruction compares.
template <typename T>
using Word = std::conditional_t<std::is_same_v<T, float>, float,
                                std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>>;
template <typename T>
__device__ Word<T> as_word(unsigned bits) {
  Word<T> word;
  memcpy(static_cast<void*>(&word), &bits, sizeof(word));
  return word;
}

// largest = the larger element, or a NaN. Returns all bits of the elements of `word` that are larger, no
// others.
template <typename Word>
__device__ unsigned take_larger(Word& largest, Word word) {
  if constexpr (std::is_same_v<Word, float>) {
    const bool wins = word > largest;
    largest = wins || word != word ? word : largest;
    return wins ? ~0U : 0;
  } else {
    const unsigned wins = __hgt2_mask(word, largest);
    largest = __hmax2_nan(largest, word);
    return wins;
  }
}

// Block (i, y, n) computes 32 groups of rows 4 y to 4 y + 3 of output n. Normalizing keeps the order of
// elements or reverses it, so elements are compared as stored, times the sign of the scale, and only the
// winner is normalized. Per output element: reads 4 input elements from memory (windows overlap in the
// caches), writes two and one byte; in half precision: 8 + 4 + 1 bytes. Bound by memory.
template <typename T>
__global__ void __launch_bounds__(kPoolThreads, kPoolBlocksAtOnce)
    max_pool_forward(WindowShape shape, const T* in, const float* scale_shift, T* out, std::uint8_t* argmax,
                     T* winners) {
  constexpr int kCount = kPack<T>, kInWord = sizeof(unsigned) / sizeof(T), kWords = kCount / kInWord;
  const Place<T> at(shape.c);
  if (at.x >= shape.out_w || at.y >= shape.out_h) return;
  const PoolWindow<T> window(shape, at, in);
  float scale[kCount], shift[kCount];
  load<kCount>(scale_shift + at.channel, scale);
  load<kCount>(scale_shift + shape.c + at.channel, shift);
  Elements<T, kCount> signs;
#pragma unroll
  for (int i = 0; i < kCount; ++i) signs.at[i] = from_float<T>(copysignf(1, scale[i]));
  const Packed<T, kCount> sign = load_packed<kCount>(signs.at);
  Word<T> largest[kWords] = {};
  unsigned places[kWords] = {};
  window.visit([&](const Packed<T, kCount>& raw, unsigned place, bool is_first) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const Word<T> word = as_word<T>(raw.words[i]) * as_word<T>(sign.words[i]);
      if (is_first) largest[i] = word;
      const unsigned wins = is_first ? ~0U : take_larger(largest[i], word);
      places[i] = (wins & (kInWord == 2 ? 0x10001 * place : place)) | (~wins & places[i]);
    }
  });
  const std::int64_t to = ((blockIdx.z * shape.out_h + at.y) * shape.out_w + at.x) * shape.c + at.channel;
  Packed<T, kCount> won;
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    largest[i] = largest[i] * as_word<T>(sign.words[i]);
    memcpy(&won.words[i], &largest[i], sizeof(unsigned));
  }
  *reinterpret_cast<Packed<T, kCount>*>(winners + to) = won;
  float values[kCount];
  Elements<std::uint8_t, kCount> winner;
  bool has_nan = false;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = won.at(i);
    winner.at[i] = static_cast<std::uint8_t>(places[i / kInWord] >> (i % kInWord * 16));
    has_nan |= values[i] != values[i];
  }
  if (has_nan) {
    __threadfence_block();  // reads the window again: no registers are kept for this
    window.visit([&](const Packed<T, kCount>& raw, unsigned place, bool) {
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        winner.at[i] = raw.at(i) != raw.at(i) ? static_cast<std::uint8_t>(place) : winner.at[i];
    });
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float value = scale[i] * values[i] + shift[i];
    values[i] = value <= 0 ? 0 : value;
    winner.at[i] = value <= 0 ? kNoWinner : winner.at[i];
  }
  store<kCount>(out + to, values);
  *reinterpret_cast<Elements<std::uint8_t, kCount>*>(argmax + to) = winner;
}

// Block (i, n) averages 128 groups of channels of image n; a thread goes down its pixels in order. Reads each
// element once, writes 1 / pixels of that: 2 bytes per element in half precision. Bound by memory.
template <typename T>
__global__ void average_forward(const T* in, T* out, std::int64_t pixels, std::int64_t groups) {
  constexpr int kCount = kPack<T>;
  const std::int64_t group = std::int64_t{blockIdx.x} * kPoolThreads + threadIdx.x;
  if (group >= groups) return;
  in += (blockIdx.y * pixels * groups + group) * kCount;
  float sum[kCount] = {};
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

// Block (i, n) spreads 128 groups of channels of image n. Writes each element once, reads 1 / pixels of that:
// 2 bytes per element in half precision. Bound by memory.
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

const dim3 kMaxPoolBlock(kPoolColumns, kPoolRows);

dim3 max_pool_grid(std::int64_t n, std::int64_t rows, std::int64_t threads_per_row) {
  return dim3(blocks_for(threads_per_row, kPoolColumns), blocks_for(rows, kPoolRows),
              static_cast<unsigned>(n));
}

dim3 average_grid(std::int64_t n, std::int64_t groups) {
  return dim3(blocks_for(groups, kPoolThreads), static_cast<unsigned>(n));
}

}  // namespace

void launch_max_pool_forward(DType dtype, const WindowShape& shape, const std::byte* in,
                             const float* scale_shift, std::byte* out, std::uint8_t* argmax,
                             std::byte* winners, cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    gpu::launch(max_pool_forward<T>, max_pool_grid(shape.n, shape.out_h, shape.out_w * shape.c / kPack<T>),
                kMaxPoolBlock, 0, stream, shape, as<T>(in), scale_shift, as<T>(out), argmax, as<T>(winners));
  });
}

void launch_average_forward(DType dtype, const WindowShape& shape, const std::byte* in, std::byte* out,
                            cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    const std::int64_t groups = shape.c / kPack<T>;
    gpu::launch(average_forward<T>, average_grid(shape.n, groups), kPoolThreads, 0, stream, as<T>(in),
                as<T>(out), shape.h * shape.w, groups);
  });
}

void launch_average_backward(DType dtype, const WindowShape& shape, const std::byte* d_out, std::byte* d_in,
                             cudaStream_t stream) {
  with_type_of(dtype, [&]<typename T>(T) {
    const std::int64_t groups = shape.c / kPack<T>;
    gpu::launch(average_backward<T>, average_grid(shape.n, groups), kPoolThreads, 0, stream, as<T>(d_out),
                as<T>(d_in), shape.h * shape.w, groups);
  });
}

}  // namespace plumb::cuda
