#include <limits>
#include <stdexcept>

#include "kernels/cuda/own/norm.h"
#include "kernels/cuda/own/norm_tile.h"

namespace plumb::cuda {
namespace {

constexpr unsigned kNoPlace = 254;  // neither a place nor kNoWinner

// 16 bytes of a window's channels as stored, and the places that won.
template <typename T, bool kTwo>
struct Window {
  Packed<T, kPack<T>> d_out, second_d_out;
  Packed<std::uint8_t, kPack<T>> argmax;

  __device__ void load(const NormPooledGradient& from, std::int64_t at) {
    d_out = load_packed<kPack<T>>(as<T>(from.d_out) + at);
    if constexpr (kTwo) second_d_out = load_packed<kPack<T>>(as<T>(from.second_d_out) + at);
    argmax = load_packed<kPack<T>>(from.argmax + at);
  }
  // Adds the gradient of the pixel at `place`. A byte is compared where it lies.
  __device__ void send(unsigned place, float (&gradient)[kPack<T>]) const {
#pragma unroll
    for (int c = 0; c < kPack<T>; ++c) {
      const unsigned differs = (argmax.words[c / 4] ^ 0x01010101 * place) & 0xffU << (c % 4 * 8);
      const float sum = kTwo ? d_out.at(c) + second_d_out.at(c) : d_out.at(c);
      if (differs == 0) gradient[c] += sum;
    }
  }
};

// Windows (row, column) to (row + 1, column + 1) cover pixels (2 row, 2 column) to (2 row + 1, 2 column + 1),
// and no others do. Beyond an edge of the image offsets are 0: no load waits for a branch.
struct Quad {
  std::int64_t window, pixel;  // the first ones' first elements
  std::int64_t to_window_below, to_window_right, to_pixel_below, to_pixel_right;
  bool has_window_below, has_window_right, has_pixel_below, has_pixel_right;

  __device__ Quad(const Shape& shape, unsigned index, int channel) {
    const auto h = static_cast<unsigned>(shape.h), w = static_cast<unsigned>(shape.w);
    const unsigned rows = (h + 1) / kPooledStride, columns = (w + 1) / kPooledStride;
    const unsigned line = index / columns, column = index % columns, row = line % rows;
    window = std::int64_t{index} * shape.c + channel;
    pixel = ((line / rows * shape.h + kPooledStride * row) * shape.w + kPooledStride * column) * shape.c +
            channel;
    has_window_below = row + 1 < rows, has_window_right = column + 1 < columns;
    has_pixel_below = kPooledStride * row + 1 < h, has_pixel_right = kPooledStride * column + 1 < w;
    to_window_below = has_window_below ? columns * shape.c : 0;
    to_window_right = has_window_right ? shape.c : 0;
    to_pixel_below = has_pixel_below ? shape.w * shape.c : 0;
    to_pixel_right = has_pixel_right ? shape.c : 0;
  }
};

// A block computes d_in for its part of the windows, last ones first. A thread's step is a Quad: it loads the
// windows and pixels of one row, then of the next. Per d_in element in a half type: reads 2 bytes, 1/2 of
// d_out, 1/2 of a second one and 1/4 of argmax from memory (neighbors' windows are in the caches), writes 2;
// twice that in f32, but for argmax. Bound by memory.
template <typename T, bool kTwo>
__global__ void __launch_bounds__(kNormThreads, 2)
    norm_pool_backward_apply(NormPooledGradient from, Shape shape, const float* coefficients, T* d_in,
                             NormPartition partition) {
  constexpr int kAtOnce = kPack<T>;
  const Place place = reversed_place_of<false>(partition);
  if (place.steps == 0) return;
  Coefficients<kNormGroup> own;
  own.load(coefficients, shape.c, place.channel);
  auto index = static_cast<unsigned>(place.first / shape.c);
  for (int step = 0; step < place.steps; ++step, index -= static_cast<unsigned>(partition.rows)) {
    const Quad quad(shape, index, place.channel);
#pragma unroll
    for (int first = 0; first < kNormGroup; first += kAtOnce) {
      Window<T, kTwo> windows[2][2];
#pragma unroll
      for (int y = 0; y < 2; ++y) {
        Packed<T, kAtOnce> in[2];
        const std::int64_t window = quad.window + first + (y == 0 ? 0 : quad.to_window_below);
        const std::int64_t pixel = quad.pixel + first + (y == 0 ? 0 : quad.to_pixel_below);
#pragma unroll
        for (int x = 0; x < 2; ++x) {
          windows[y][x].load(from, window + (x == 0 ? 0 : quad.to_window_right));
          in[x] = load_packed<kAtOnce>(as<T>(from.in) + pixel + (x == 0 ? 0 : quad.to_pixel_right));
        }
#pragma unroll
        for (int x = 0; x < 2; ++x) {
          float gradient[kAtOnce] = {}, values[kAtOnce];
#pragma unroll
          for (int i = 0; i <= y; ++i) {
#pragma unroll
            for (int j = 0; j <= x; ++j) {
              const bool exists = (i == 0 || quad.has_window_below) && (j == 0 || quad.has_window_right);
              const int row = y - kPooledStride * i + kPooledPadding,
                        column = x - kPooledStride * j + kPooledPadding;
              windows[i][j].send(exists ? row * kPooledWindow + column : kNoPlace, gradient);
            }
          }
#pragma unroll
          for (int c = 0; c < kAtOnce; ++c) values[c] = own.d_in(first + c, gradient[c], in[x].at(c));
          if ((y == 0 || quad.has_pixel_below) && (x == 0 || quad.has_pixel_right))
            store(d_in + pixel + x * shape.c, values);
        }
      }
    }
  }
}

}  // namespace

void launch_norm_pool_backward_apply(const Shape& shape, DType dtype, const NormPooledGradient& gradient,
                                     const float* coefficients, std::byte* d_in, cudaStream_t stream) {
  const NormPartition partition = partition_pooled(shape);
  if (partition.steps > std::numeric_limits<int>::max())
    throw std::logic_error("a norm behind a max pool has at most 2^31 - 1 windows");
  with_type_of(dtype, [&]<typename T>(T) {
    const auto kernel =
        gradient.second_d_out ? norm_pool_backward_apply<T, true> : norm_pool_backward_apply<T, false>;
    gpu::launch(kernel, pass_grid(partition), pass_block(partition), 0, stream, gradient, shape, coefficients,
                as<T>(d_in), partition);
  });
}

}  // namespace plumb::cuda
