#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/layers.h"

namespace plumb::cuda {
namespace {

constexpr int kChannels = 64;  // per block
constexpr int kPixels = 64;    // per block

// A block's part of an image.
struct Tile {
  std::int64_t pixels = 0, first_pixel = 0;  // in the image
  int channels = 0, first_channel = 0;
  int pixels_here = 0, channels_here = 0;
};

__device__ Tile tile_of(std::int64_t pixels, int channels) {
  Tile tile{.pixels = pixels, .channels = channels};
  const int channel_tiles = (channels + kChannels - 1) / kChannels;
  tile.first_pixel = std::int64_t{blockIdx.x / channel_tiles} * kPixels;
  tile.first_channel = static_cast<int>(blockIdx.x % channel_tiles) * kChannels;
  tile.pixels_here = static_cast<int>(min(pixels - tile.first_pixel, std::int64_t{kPixels}));
  tile.channels_here = min(channels - tile.first_channel, kChannels);
  return tile;
}

// Draws which elements of the tile stay. In the order c, h, w a channel's pixels are contiguous. The threads
// share their random blocks of four, adjacent threads taking adjacent channels.
__device__ void draw(const Tile& tile, const DropoutRule& rule, const StepState& step,
                     std::uint8_t (&keeps)[kPixels][kChannels]) {
  constexpr int kBlocks = kPixels / 4 + 1;  // touched by a channel's pixels, at most
  for (int i = static_cast<int>(threadIdx.x); i < kBlocks * kChannels; i += kThreads) {
    const int channel = i % kChannels;
    if (channel >= tile.channels_here) continue;
    const std::int64_t first = (tile.first_channel + channel) * tile.pixels + tile.first_pixel;
    const std::int64_t block = first / 4 + i / kChannels;
    if (4 * block >= first + tile.pixels_here) continue;
    const PhiloxBlock bits = dropout_bits(rule.key, step.iteration, step.first_sample + blockIdx.y,
                                          static_cast<std::uint32_t>(block));
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      const std::int64_t pixel = 4 * block + word - first;
      if (pixel >= 0 && pixel < tile.pixels_here)
        keeps[pixel][channel] = bits[static_cast<std::size_t>(word)] >= rule.threshold ? 1 : 0;
    }
  }
}

// Block (tile, n) has 64 channels of 64 pixels of image n. Reads and writes each element once, 16 bytes at a
// time in half precision, 128 contiguous bytes of a pixel. A random block of some 90 instructions serves four
// elements in different pixels, exchanged through shared memory. For 7 x 7 pixels it takes 13 or 14 blocks
// per channel instead of 12.25: 25 instructions per element for 4 bytes of memory traffic in half precision.
// Half precision is bound by arithmetic, within twice the traffic's time on an H200, f32 by memory.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    dropout(const T* in, T* out, std::int64_t pixels, int channels, DropoutRule rule, const State* state) {
  __shared__ std::uint8_t keeps[kPixels][kChannels];
  const Tile tile = tile_of(pixels, channels);
  draw(tile, rule, state->step, keeps);
  __syncthreads();
  constexpr int kShares = kChannels / kPerThread;  // per pixel
  for (int i = static_cast<int>(threadIdx.x); i < kShares * tile.pixels_here; i += kThreads) {
    const int pixel = i / kShares, channel = i % kShares * kPerThread;
    if (channel >= tile.channels_here) continue;
    const std::int64_t first =
        (blockIdx.y * pixels + tile.first_pixel + pixel) * channels + tile.first_channel + channel;
    float values[kPerThread];
    load(in + first, values);
#pragma unroll
    for (int k = 0; k < kPerThread; ++k)
      values[k] = keeps[pixel][channel + k] != 0 ? values[k] * rule.keep_scale : 0.0F;
    store(out + first, values);
  }
}

}  // namespace

void launch_dropout(DType dtype, const Shape& shape, const std::byte* in, std::byte* out,
                    const DropoutRule& rule, const State* state, cudaStream_t stream) {
  const std::int64_t pixels = shape.h * shape.w;
  const dim3 grid(blocks_for(divide_up(pixels, kPixels) * divide_up(shape.c, kChannels), 1),
                  static_cast<unsigned>(shape.n));
  with_type_of(dtype, [&]<typename T>(T) {
    gpu::launch(dropout<T>, grid, kThreads, 0, stream, as<T>(in), as<T>(out), pixels,
                static_cast<int>(shape.c), rule, state);
  });
}

}  // namespace plumb::cuda
