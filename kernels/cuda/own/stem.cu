#include "kernels/cuda/own/conv.h"
#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/finish_sums.h"

namespace plumb::cuda {
namespace {

static_assert(kStemWarps == kStemKernel, "each warp has a row of the kernel's gradient");

struct ImageTile {
  unsigned image;
  int row, column;  // of the first output
};

// Tiles lie along a row of tiles, then down, then in the next image.
__device__ ImageTile tile_at(const StemShape& shape, unsigned index) {
  const auto across = static_cast<unsigned>((shape.out_w + kStemTileColumns - 1) / kStemTileColumns);
  const auto down = static_cast<unsigned>((shape.out_h + kStemTileRows - 1) / kStemTileRows);
  const unsigned line = index / across;
  return {line / down, static_cast<int>(line % down) * kStemTileRows,
          static_cast<int>(index % across) * kStemTileColumns};
}

// The pixels that a tile's windows cover; 0 outside the image.
template <typename T>
__device__ void hold_input(const StemShape& shape, const ImageTile& tile, const T* in, uint4* held) {
  const T* const image = in + std::int64_t{tile.image} * shape.h * shape.w * kStemChannels;
  const int h = static_cast<int>(shape.h), w = static_cast<int>(shape.w);
  for (int chunk = static_cast<int>(threadIdx.x); chunk < kStemInputChunks; chunk += kStemThreads) {
    const int y = tile.row * kStemStride - kStemPadding + chunk / kStemRowChunks;
    const int x = tile.column * kStemStride - kStemPadding - 1 + chunk % kStemRowChunks * 2;
    const bool is_inside = y >= 0 && y < h && x >= 0 && x < w;
    const int pixel = is_inside ? y * w + x : 0;
    gpu::copy_to_shared(held + chunk, image + pixel * kStemChannels, is_inside);
  }
}

// The output channel of a product's column. A lane of a quad has columns 2 * lane and the next of each tile
// of 8: so it gets 8 adjacent channels from 4 tiles, and a quad a pixel's 32.
__device__ constexpr int channel_of_column(int column) {
  const int tile = column / 8, lane = column % 8 / 2;
  return tile / 4 * 32 + lane * 8 + tile % 4 * 2 + column % 2;
}

// [kernel row, chunk of the window, column].
template <typename T>
__device__ void hold_weights(const T* weight, uint4* held) {
  for (int i = static_cast<int>(threadIdx.x); i < kStemWeightChunks; i += kStemThreads) {
    const int chunk = i / kStemOutputs % kStemWindowChunks, row = i / (kStemOutputs * kStemWindowChunks);
    const T* const taps =
        weight + (channel_of_column(i % kStemOutputs) * kStemKernel + row) * kStemKernel * kStemChannels;
    uint2 left{};
    if (chunk > 0) left = *reinterpret_cast<const uint2*>(taps + (2 * chunk - 1) * kStemChannels);
    const uint2 right = *reinterpret_cast<const uint2*>(taps + 2 * chunk * kStemChannels);
    held[i] = {left.x, left.y, right.x, right.y};
  }
}

// Sums over the outputs that a block has computed, as stored, and of their squares. A lane has 4 channels of
// each half of the output's, those of its pair of lanes; the pair's other lane has the other 4.
struct ChannelSums {
  float values[2][4] = {}, squares[2][4] = {};

  // Takes the sums over a lane's 8 channels of this half.
  __device__ void add(int half, int lane, const float (&sums)[8], const float (&sums_of_squares)[8]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool upper = (lane & 4) != 0;
      const float value = __shfl_xor_sync(0xffffffff, upper ? sums[i] : sums[4 + i], 4);
      const float square =
          __shfl_xor_sync(0xffffffff, upper ? sums_of_squares[i] : sums_of_squares[4 + i], 4);
      values[half][i] += (upper ? sums[4 + i] : sums[i]) + value;
      squares[half][i] += (upper ? sums_of_squares[4 + i] : sums_of_squares[i]) + square;
    }
  }
  // Over the block, in a fixed order: partials [2, 64].
  __device__ void leave(float* held, float* partials) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    __syncthreads();  // nobody reads the windows any more
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float value = values[i / 4][i % 4], square = squares[i / 4][i % 4];
#pragma unroll
      for (int distance = 8; distance < 32; distance *= 2) {
        value += __shfl_xor_sync(0xffffffff, value, distance);
        square += __shfl_xor_sync(0xffffffff, square, distance);
      }
      if (lane >= 8) continue;
      const int channel = i / 4 * 32 + lane % 4 * 8 + (lane & 4) + i % 4;
      held[warp * 2 * kStemOutputs + channel] = value;
      held[(warp * 2 + 1) * kStemOutputs + channel] = square;
    }
    __syncthreads();
    const int at = static_cast<int>(threadIdx.x);
    if (at >= 2 * kStemOutputs) return;
    float sum = 0;
#pragma unroll
    for (int from = 0; from < kStemWarps; ++from) sum += held[from * 2 * kStemOutputs + at];
    partials[at] = sum;
  }
};

// Each warp computes two rows of 16 outputs of a tile, all 64 channels. Per output element: reads 2 bytes of
// image, which its neighbors' windows share, and writes 2; 448 multiply-adds of 392 that count. Bound by
// memory, nearly as much by tensor cores and shared memory.
template <typename T>
__global__ void __launch_bounds__(kStemThreads, 2)
    stem_forward(StemShape shape, unsigned tiles, const T* in, const T* weight, T* out, float* partials) {
  uint4* const weights = gpu::dynamic_shared<uint4>();
  uint4* const input = weights + kStemWeightChunks;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int window = warp * 16 + lane % 16 + lane / 16;
  const uint4* const columns = weights + lane / 8 % 2 * kStemOutputs + lane / 16 * 8 + lane % 8;
  ChannelSums totals;
  hold_weights(weight, weights);
  if (blockIdx.x < tiles) hold_input(shape, tile_at(shape, blockIdx.x), in, input);
  int stage = 0;  // where the tile lies; the next one is copied meanwhile
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x, stage ^= 1) {
    const ImageTile tile = tile_at(shape, index);
    gpu::wait_for_copies();
    __syncthreads();
    if (tiles - index > gridDim.x)
      hold_input(shape, tile_at(shape, index + gridDim.x), in, input + (stage ^ 1) * kStemInputChunks);
    if (tile.column + 16 * warp >= shape.out_w) continue;
    const uint4* windows = input + stage * kStemInputChunks + window;
    float sums[kStemTileRows][8][4] = {};
    const uint4* factors_of_row = columns;
#pragma unroll 1
    for (int kernel_row = 0; kernel_row < kStemKernel; ++kernel_row) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {  // of a window's row: 16 factors
        unsigned image[kStemTileRows][4];
#pragma unroll
        for (int row = 0; row < kStemTileRows; ++row)
          gpu::load_matrices(image[row], windows + kStemStride * row * kStemRowChunks + half * 2);
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
          unsigned factors[4];
          gpu::load_matrices(factors, factors_of_row + half * 2 * kStemOutputs + pair * 16);
#pragma unroll
          for (int row = 0; row < kStemTileRows; ++row) {
            gpu::multiply_add<T>(sums[row][2 * pair], image[row], factors[0], factors[1]);
            gpu::multiply_add<T>(sums[row][2 * pair + 1], image[row], factors[2], factors[3]);
          }
        }
      }
      windows += kStemRowChunks;
      factors_of_row += kStemWindowChunks * kStemOutputs;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float values[8] = {}, squares[8] = {};
#pragma unroll
      for (int part = 0; part < 2 * kStemTileRows; ++part) {
        const int y = tile.row + part / 2, x = tile.column + 16 * warp + part % 2 * 8 + lane / 4;
        if (y >= shape.out_h || x >= shape.out_w) continue;
        float outputs[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) outputs[i] = sums[part / 2][half * 4 + i / 2][part % 2 * 2 + i % 2];
        store<8>(out + ((tile.image * shape.out_h + y) * shape.out_w + x) * kStemOutputs + half * 32 +
                     lane % 4 * 8,
                 outputs);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float stored = to_float(from_float<T>(outputs[i]));
          values[i] += stored;
          squares[i] += stored * stored;
        }
      }
      if (partials) totals.add(half, lane, values, squares);
    }
  }
  if (partials) totals.leave(reinterpret_cast<float*>(weights), partials + blockIdx.x * 2 * kStemOutputs);
}

// Where a pixel's chunk of the gradient lies, so that a column of 8 pixels spreads over all banks.
__device__ constexpr int gradient_at(int pixel, int chunk) {
  return pixel * kStemPixelChunks + (chunk ^ pixel % kStemPixelChunks);
}
template <typename T>
__device__ void hold_gradient(const StemShape& shape, const ImageTile& tile, const T* d_out, uint4* held) {
  constexpr int kPixelsAtOnce = kStemThreads / kStemPixelChunks;
  static_assert(kStemTileColumns % kPixelsAtOnce == 0);
  const int chunk = static_cast<int>(threadIdx.x) % kStemPixelChunks;
  const std::int64_t first = (tile.image * shape.out_h + tile.row) * shape.out_w + tile.column;
  const T* const from = d_out + first * kStemOutputs + chunk * 8;
#pragma unroll
  for (int row = 0; row < kStemTileRows; ++row) {
#pragma unroll
    for (int i = 0; i < kStemTileColumns; i += kPixelsAtOnce) {
      const int column = i + static_cast<int>(threadIdx.x) / kStemPixelChunks;
      const bool is_inside = tile.row + row < shape.out_h && tile.column + column < shape.out_w;
      const int pixel = is_inside ? row * static_cast<int>(shape.out_w) + column : 0;
      gpu::copy_to_shared(held + gradient_at(row * kStemTileColumns + column, chunk),
                          from + pixel * kStemOutputs, is_inside);
    }
  }
}

// Warp r sums the gradient of the kernel's row r, for all 64 channels, over the block's tiles. Reads each
// image and d_out once, the images' halo twice: 2.5 bytes per element of d_out. Bound by memory, nearly as
// much by tensor cores and shared memory.
template <typename T>
__global__ void __launch_bounds__(kStemThreads, 2)
    stem_weights(StemShape shape, unsigned tiles, const T* in, const T* d_out, float* partials) {
  uint4* const gradient = gpu::dynamic_shared<uint4>();
  uint4* const input = gradient + 2 * kStemGradientChunks;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const uint4* const windows = input + warp * kStemRowChunks + lane % 16 + lane / 16;
  float sums[4][kStemWindowChunks][4] = {};
  const auto hold = [&](const ImageTile& tile, int stage) {
    hold_input(shape, tile, in, input + stage * kStemInputChunks);
    hold_gradient(shape, tile, d_out, gradient + stage * kStemGradientChunks);
  };
  ImageTile next = tile_at(shape, blockIdx.x);
  if (blockIdx.x < tiles) hold(next, 0);
  int stage = 0;
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x, stage ^= 1) {
    const ImageTile tile = next;
    gpu::wait_for_copies();
    __syncthreads();
    if (tiles - index > gridDim.x) {
      next = tile_at(shape, index + gridDim.x);
      hold(next, stage ^ 1);
    }
    const uint4* const own_windows = windows + stage * kStemInputChunks;
    const uint4* const own_gradient = gradient + stage * kStemGradientChunks;
    const int width = min(static_cast<int>(shape.out_w) - tile.column, kStemTileColumns);
#pragma unroll
    for (int row = 0; row < kStemTileRows; ++row) {
#pragma unroll 2
      for (int first = 0; first < width; first += 16) {
        unsigned image[2][4];
#pragma unroll
        for (int pair = 0; pair < 2; ++pair)
          gpu::load_transposed_matrices(image[pair],
                                        own_windows + kStemStride * row * kStemRowChunks + first + 2 * pair);
        const int pixel = row * kStemTileColumns + first + lane / 16 * 8 + lane % 8;
#pragma unroll
        for (int group = 0; group < 4; ++group) {
          unsigned channels[4];
          gpu::load_transposed_matrices(channels,
                                        own_gradient + gradient_at(pixel, 2 * group + lane / 8 % 2));
#pragma unroll
          for (int chunk = 0; chunk < kStemWindowChunks; ++chunk)
            gpu::multiply_add<T>(sums[group][chunk], channels, image[chunk / 2][chunk % 2 * 2],
                                 image[chunk / 2][chunk % 2 * 2 + 1]);
        }
      }
    }
  }
  partials += std::int64_t{blockIdx.x} * kStemWeights;
#pragma unroll
  for (int part = 0; part < 4 * kStemWindowChunks * 2; ++part) {
    const int group = part / (2 * kStemWindowChunks), chunk = part / 2 % kStemWindowChunks, half = part % 2;
    const int channel = group * 16 + half * 8 + lane / 4, tap = chunk * 2 + lane % 4 / 2 - 1;
    if (tap < 0) continue;  // left of the kernel
    float* const at = partials + ((channel * kStemKernel + warp) * kStemKernel + tap) * kStemChannels;
    const float values[2] = {sums[group][chunk][half * 2], sums[group][chunk][half * 2 + 1]};
    store<2>(at + lane % 2 * 2, values);
  }
}

}  // namespace

void launch_stem_forward(DType dtype, const StemShape& shape, int multiprocessors, const std::byte* in,
                         const std::byte* weight, std::byte* out, float* sums, float* partials,
                         cudaStream_t stream) {
  const int blocks = stem_blocks(shape, multiprocessors);
  with_half_type_of(dtype, [&]<typename T>(T) {
    gpu::launch(stem_forward<T>, dim3(static_cast<unsigned>(blocks)), dim3(kStemThreads),
                kStemForwardSharedBytes, stream, shape, static_cast<unsigned>(stem_tiles(shape)), as<T>(in),
                as<T>(weight), as<T>(out), sums ? partials : nullptr);
  });
  if (sums) launch_finish_sums(partials, blocks, 2 * kStemOutputs, sums, stream);
}

void launch_stem_backward_weights(DType dtype, const StemShape& shape, int multiprocessors,
                                  const std::byte* in, const std::byte* d_out, float* partials,
                                  std::byte* d_weight, cudaStream_t stream) {
  const int blocks = stem_blocks(shape, multiprocessors);
  with_half_type_of(dtype, [&]<typename T>(T) {
    gpu::launch(stem_weights<T>, dim3(static_cast<unsigned>(blocks)), dim3(kStemThreads),
                kStemWeightsSharedBytes, stream, shape, static_cast<unsigned>(stem_tiles(shape)), as<T>(in),
                as<T>(d_out), partials);
    launch_finish_sums(partials, blocks, kStemWeights, as<T>(d_weight), stream);
  });
}

}  // namespace plumb::cuda
