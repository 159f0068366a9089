#include <type_traits>

#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/finish_sums.h"
#include "kernels/cuda/own/image_tile.h"
#include "kernels/cuda/own/window.h"

namespace plumb::cuda {
namespace {

static_assert(gpu::kWarpgroupSums == kWindowColumns / 2);

enum class WindowPass { forward, forward_sums, gradient, gradient_for_norm };
constexpr bool is_gradient(WindowPass pass) {
  return pass >= WindowPass::gradient;
}
constexpr bool leaves_sums(WindowPass pass) {
  return pass == WindowPass::forward_sums || pass == WindowPass::gradient_for_norm;
}

// Barriers: a tile's input is there, for either warpgroup; a warpgroup has multiplied its tile.
enum WindowBarrier : int { kInputIsThere = 1, kInputIsRead = 3 };

__device__ ImageTile window_tile_at(const WindowShape& shape, unsigned index) {
  return image_tile_at<kWindowTileRows, kWindowTileColumns>(shape.h, shape.w, index);
}

// Walks over positions, kStep further each time.
template <int kPitch, int kStep>
struct WindowPosition {
  static_assert(kStep <= kPitch);
  int row, column;
  __device__ explicit WindowPosition(int position) : row(0), column(position) {}
  __device__ void advance() {
    column += kStep;
    if (column >= kPitch) column -= kPitch, ++row;
  }
};

// So many threads copy the tile's pixels and those of its border, 0 or 1 wide; 0 outside the image.
template <int kThreads, int kBorder, typename T>
__device__ void hold_window_pixels(const WindowShape& shape, const ImageTile& tile, const T* from,
                                   uint4* held) {
  constexpr int kPitch = kWindowTileColumns + 2 * kBorder, kStep = kThreads / kWindowChunks;
  constexpr int kPositions = (kWindowTileRows + 2 * kBorder) * kPitch;
  const int thread = static_cast<int>(threadIdx.x) % kThreads;
  const int h = static_cast<int>(shape.h), w = static_cast<int>(shape.w), chunk = thread % kWindowChunks;
  const T* const image = from + std::int64_t{tile.image} * h * w * kWindowChannels + chunk * 8;
  held += chunk * (kBorder == 0 ? kWindowGradientPlaneChunks : kWindowPlaneChunks);
  WindowPosition<kPitch, kStep> at(thread / kWindowChunks);
#pragma unroll 2
  for (int position = thread / kWindowChunks; position < kPositions; position += kStep, at.advance()) {
    const int y = tile.row - kBorder + at.row, x = tile.column - kBorder + at.column;
    const bool is_inside = y >= 0 && y < h && x >= 0 && x < w;
    gpu::copy_to_shared(held + position, image + (is_inside ? (y * w + x) * kWindowChannels : 0), is_inside);
  }
}

// [tap, chunk of a row, row].
template <typename T>
__device__ void hold_window_weights(const T* weight, uint4* held) {
  for (int i = static_cast<int>(threadIdx.x); i < kWindowWeightChunks; i += kWindowThreads) {
    const int chunk = i % kWindowChunks, tap = i / kWindowChunks % kWindowTaps,
              row = i / kWindowChunks / kWindowTaps;
    gpu::copy_to_shared(held + tap * kWindowTapChunks + chunk * kWindowChannels + row, weight + i * 8, true);
  }
}

// All products of a tile as one group. A forward product's rows are those of the weights, a gradient's their
// columns, and the gradient of a tap's input comes from the opposite side.
template <typename T, bool kGradient>
__device__ void begin_window(const uint4* weights, const uint4* input, float (&sums)[gpu::kWarpgroupSums]) {
  constexpr int kEight = 128, kColumn = 16 * kWindowChannels, kPlane = 16 * kWindowPlaneChunks;
  const std::uint64_t left =
      gpu::matrix_at(weights, kGradient ? kEight : kColumn, kGradient ? kColumn : kEight);
  const std::uint64_t right = gpu::matrix_at(input, kPlane, kEight);
  gpu::begin_products();
#pragma unroll
  for (int tap = 0; tap < kWindowTaps; ++tap) {
    const int tap_of_weights = kGradient ? kWindowTaps - 1 - tap : tap;
    const int position = tap / kWindow * kWindowPitch + tap % kWindow;
#pragma unroll
    for (int step = 0; step < kWindowChannels / 16; ++step)  // in chunks, as the address in a descriptor
      gpu::multiply_warpgroup<T, kGradient>(
          sums, left + tap_of_weights * kWindowTapChunks + step * 2 * (kGradient ? kEight : kColumn) / 16,
          right + position + step * 2 * kWindowPlaneChunks, tap + step > 0);
  }
  gpu::end_product_group();
}

// Over the outputs that a lane has stored, 8 channels of each: of the outputs and of their squares, or of the
// gradient and of its product with (in - mean).
struct WindowSums {
  float values[8] = {}, products[8] = {};

  // Over the lanes with the same channels, in a fixed order: partials [2, 64].
  __device__ void leave(int channel, float* partials) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int distance = 2; distance < 32; distance *= 2) {
        values[i] += __shfl_xor_sync(0xffffffff, values[i], distance);
        products[i] += __shfl_xor_sync(0xffffffff, products[i], distance);
      }
    }
    if (lane >= 2) return;
    store<8>(partials + channel, values);
    store<8>(partials + kWindowChannels + channel, products);
  }
};

template <typename T>
struct WindowNormTensors {
  const T* in = nullptr;
  const float *scale = nullptr, *bias = nullptr, *mean = nullptr, *inv_std = nullptr;
};
// What a lane needs of them for its channels.
struct WindowNormLine {
  float factor[8], mean[8], bias[8];
  template <typename T>
  __device__ void load_all(const WindowNormTensors<T>& norm, int channel) {
    float inv_std[8];
    load<8>(norm.scale + channel, factor);
    load<8>(norm.inv_std + channel, inv_std);
    load<8>(norm.mean + channel, mean);
    load<8>(norm.bias + channel, bias);
#pragma unroll
    for (int i = 0; i < 8; ++i) factor[i] *= inv_std[i];
  }
};

template <typename T>
__device__ unsigned packed_pair(float first, float second) {
  Elements<T, 2> pair{from_float<T>(first), from_float<T>(second)};
  unsigned word;
  memcpy(&word, &pair, sizeof word);
  return word;
}

// Stores a warp's 16 channels of a tile. 16 positions at a time pass through shared memory, from which a lane
// takes 8 channels of one.
template <typename T, WindowPass kPass>
__device__ void store_window(const WindowShape& shape, const ImageTile& tile,
                             const float (&tile_sums)[gpu::kWarpgroupSums], uint4* staging, T* out,
                             const WindowNormTensors<T>& norm, const WindowNormLine& line, int channel,
                             WindowSums& sums) {
  constexpr int kTurns = (kWindowColumns + kWindowOutputPixels - 1) / kWindowOutputPixels;
  constexpr int kAhead = kPass == WindowPass::gradient_for_norm ? 4 : 1;  // of the norm's input
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int rows = min(static_cast<int>(shape.h) - tile.row, kWindowTileRows);
  const int columns = min(static_cast<int>(shape.w) - tile.column, kWindowTileColumns);
  const int w = static_cast<int>(shape.w);
  // In chunks, which the compiler needs to see in order to store one at once.
  const std::int64_t first =
      ((std::int64_t{tile.image} * shape.h + tile.row) * shape.w + tile.column) * kWindowChunks + channel / 8;
  using Position = WindowPosition<kWindowPitch, kWindowOutputPixels>;
  const auto offset_of = [&](const Position& at) { return (at.row * w + at.column) * kWindowChunks; };
  const auto has_pixel = [&](const Position& at) { return at.row < rows && at.column < columns; };
  Packed<T, 8> norm_in[kAhead];
  Position ahead(lane / 2);
  const auto load_next = [&](int turn) {
    if (has_pixel(ahead))
      norm_in[turn % kAhead] = reinterpret_cast<const Packed<T, 8>*>(norm.in)[first + offset_of(ahead)];
    ahead.advance();
  };
  if constexpr (kPass == WindowPass::gradient_for_norm)
#pragma unroll
    for (int turn = 0; turn < kAhead; ++turn) load_next(turn);
  Position at(lane / 2);
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn, at.advance()) {
    uint4* const own = staging + turn % 2 * kWindowOutputChunks;
    unsigned words[4];
#pragma unroll
    for (int matrix = 0; matrix < 4; ++matrix) {  // the last turn has 8 positions only
      const int eight = 2 * turn + matrix / 2 < kWindowColumns / 8 ? 2 * turn + matrix / 2 : 2 * turn;
      words[matrix] =
          packed_pair<T>(tile_sums[4 * eight + matrix % 2 * 2], tile_sums[4 * eight + matrix % 2 * 2 + 1]);
    }
    gpu::store_transposed_matrices(own + lane / 8 % 2 * kWindowHalfChunks + lane / 16 * 8 + lane % 8, words);
    __syncwarp();
    auto made = load_packed<8>(reinterpret_cast<const T*>(own + lane % 2 * kWindowHalfChunks + lane / 2));
    if (has_pixel(at)) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if constexpr (kPass == WindowPass::forward_sums) {
          sums.values[i] += made.at(i);
          sums.products[i] += made.at(i) * made.at(i);
        }
        if constexpr (kPass == WindowPass::gradient_for_norm) {
          const float centered = norm_in[turn % kAhead].at(i) - line.mean[i];
          const bool passes = line.factor[i] * centered + line.bias[i] > 0;
          sums.values[i] += passes ? made.at(i) : 0.0F;
          sums.products[i] += passes ? made.at(i) * centered : 0.0F;
          if (!passes) made.words[i / 2] &= i % 2 == 0 ? 0xffff0000U : 0xffffU;
        }
      }
      reinterpret_cast<uint4*>(out)[first + offset_of(at)] =
          make_uint4(made.words[0], made.words[1], made.words[2], made.words[3]);
    }
    if constexpr (kPass == WindowPass::gradient_for_norm)
      if (turn + kAhead < kTurns) load_next(turn);
  }
}

// A block holds all weights and walks over tiles. One warpgroup stores its tile while the other one
// multiplies. Each copies the input of one of the other's tiles into the stage that it has just read. Per
// output element: reads 2 bytes, 3.1 from the L2 cache, and writes 2; with a norm reads 2 more. 597
// multiply-adds, of which 576 count. Bound by tensor cores, nearly as much by memory.
template <typename T, WindowPass kPass>
__global__ void __launch_bounds__(kWindowThreads, 1)
    window_products(WindowShape shape, unsigned tiles, const T* in, const T* weight, T* out,
                    WindowNormTensors<T> norm, float* partials) {
  uint4* const weights = gpu::dynamic_shared<uint4>();
  uint4* const stages = weights + kWindowWeightChunks;
  const auto warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  uint4* const staging = stages + kWindowStages * kWindowStageChunks + warp * 2 * kWindowOutputChunks;
  const auto group = static_cast<unsigned>(warp) / 4;
  const int channel = warp % 4 * 16 + lane % 2 * 8;
  const unsigned own_tiles = (tiles - blockIdx.x + gridDim.x - 1) / gridDim.x;
  const auto tile_of = [&](unsigned i) { return window_tile_at(shape, blockIdx.x + i * gridDim.x); };
  const auto hold = [&](unsigned i) {
    if (i < own_tiles)
      hold_window_pixels<kWindowGroupThreads, 1>(shape, tile_of(i), in,
                                                 stages + i % kWindowStages * kWindowStageChunks);
  };
  WindowSums sums;
  WindowNormLine line;
  if constexpr (kPass == WindowPass::gradient_for_norm) line.load_all(norm, channel);
  hold_window_weights(weight, weights);
  hold(group);
  gpu::wait_for_copies();
  gpu::share_with_products();
  __syncthreads();
  if (group == 1) {
    gpu::arrive(kInputIsThere, kWindowThreads);
    hold(2);
  }
  for (unsigned i = group; i < own_tiles; i += kWindowGroups) {
    float tile_sums[gpu::kWarpgroupSums];
    gpu::meet(kInputIsThere + static_cast<int>(group), kWindowThreads);
    begin_window<T, is_gradient(kPass)>(weights, stages + i % kWindowStages * kWindowStageChunks, tile_sums);
    gpu::wait_for_copies();  // of the other one's next tile
    gpu::share_with_products();
    if (i + 1 < own_tiles) gpu::arrive(kInputIsThere + 1 - static_cast<int>(group), kWindowThreads);
    gpu::wait_for_product_groups<0>();
    gpu::meet(kInputIsRead + static_cast<int>(group), kWindowGroupThreads);
    hold(i + kWindowStages);
    store_window<T, kPass>(shape, tile_of(i), tile_sums, staging, out, norm, line, channel, sums);
  }
  if constexpr (leaves_sums(kPass))
    sums.leave(channel, partials + (blockIdx.x * kWindowGroups + group) * 2 * kWindowChannels);
}

// Warpgroup r sums the gradient of the windows' row r over the block's tiles: d_out's 64 channels times the
// input's, for three taps, which are shifts of the input's address. A product sums over 8 pixels of a row and
// the 8 below them; lanes load d_out for two rows of a tile, for all taps, as a product that read both
// matrices from shared memory would keep it busy all the time. The tile after the next one is copied while
// the first two rows are multiplied. Per element: reads 2 bytes of each tensor, 5.1 from the L2 cache; 576
// multiply-adds, which all count. Bound by tensor cores; shared memory moves 128 bytes a cycle for four
// fifths of that time. At last each block leaves 144 KiB for launch_finish_sums().
template <typename T>
__global__ void __launch_bounds__(kWindowWeightsThreads, 1)
    window_weights(WindowShape shape, unsigned tiles, const T* in, const T* d_out, float* partials) {
  constexpr int kSteps = kWindowTileColumns / 8;
  uint4* const stages = gpu::dynamic_shared<uint4>();
  const auto warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int row = warp / 4;
  const unsigned own_tiles = (tiles - blockIdx.x + gridDim.x - 1) / gridDim.x;
  const auto hold = [&](unsigned i) {
    if (i >= own_tiles) return;
    const ImageTile tile = window_tile_at(shape, blockIdx.x + i * gridDim.x);
    uint4* const stage = stages + i % kWindowStages * kWindowWeightsStageChunks;
    hold_window_pixels<kWindowWeightsThreads, 1>(shape, tile, in, stage);
    hold_window_pixels<kWindowWeightsThreads, 0>(shape, tile, d_out, stage + kWindowStageChunks);
  };
  float sums[kWindow][gpu::kSquareSums] = {};
  hold(0);
  gpu::end_copy_group();
  hold(1);
  gpu::end_copy_group();
  gpu::wait_for_copy_groups<1>();
  gpu::share_with_products();
  __syncthreads();
  for (unsigned i = 0; i < own_tiles; ++i) {
    const uint4* const input = stages + i % kWindowStages * kWindowWeightsStageChunks;
    const uint4* const gradient = input + kWindowStageChunks +
                                  (warp % 4 * 2 + lane / 8 % 2) * kWindowGradientPlaneChunks +
                                  lane / 16 * kWindowTileColumns + lane % 8;
    const std::uint64_t right =
        gpu::matrix_at(input + row * kWindowPitch, 16 * kWindowPitch, 16 * kWindowPlaneChunks);
#pragma unroll
    for (int line = 0; line < kWindowTileRows; line += 2) {
      unsigned left[kSteps][4];
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        gpu::load_transposed_matrices(left[step], gradient + line * kWindowTileColumns + 8 * step);
      gpu::begin_products();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
#pragma unroll
        for (int tap = 0; tap < kWindow; ++tap)
          gpu::multiply_warpgroup<T>(sums[tap], left[step], right + line * kWindowPitch + 8 * step + tap);
      }
      gpu::end_product_group();
      if (line == 0) {
        gpu::wait_for_copies();
        gpu::share_with_products();
        __syncthreads();  // the next tile is there, the one before was read
        hold(i + 2);
      }
      gpu::wait_for_product_groups<0>();
    }
  }
  partials += std::int64_t{blockIdx.x} * kWindowWeights;
#pragma unroll
  for (int tap = 0; tap < kWindow; ++tap) {
#pragma unroll
    for (int i = 0; i < gpu::kSquareSums; i += 2) {
      const int out_channel = warp % 4 * 16 + i / 2 % 2 * 8 + lane / 4, channel = i / 4 * 8 + lane % 4 * 2;
      const float values[2] = {sums[tap][i], sums[tap][i + 1]};
      store<2>(partials + ((out_channel * kWindow + row) * kWindow + tap) * kWindowChannels + channel,
               values);
    }
  }
}

template <WindowPass kPass, typename T>
void launch_window(const WindowShape& shape, int blocks, const T* in, const T* weight, T* out,
                   const WindowNormTensors<T>& norm, float* partials, cudaStream_t stream) {
  gpu::launch(window_products<T, kPass>, dim3(static_cast<unsigned>(blocks)), dim3(kWindowThreads),
              kWindowSharedBytes, stream, shape, static_cast<unsigned>(window_tiles(shape)), in, weight, out,
              norm, partials);
}

}  // namespace

void launch_window_forward(DType dtype, const WindowShape& shape, int multiprocessors, const std::byte* in,
                           const std::byte* weight, std::byte* out, float* sums, float* partials,
                           cudaStream_t stream) {
  const int blocks = window_blocks(shape, multiprocessors);
  with_half_type_of(dtype, [&]<typename T>(T) {
    const auto launch =
        sums ? launch_window<WindowPass::forward_sums, T> : launch_window<WindowPass::forward, T>;
    launch(shape, blocks, as<T>(in), as<T>(weight), as<T>(out), {}, partials, stream);
  });
  if (sums) launch_finish_sums(partials, blocks * kWindowGroups, 2 * kWindowChannels, sums, stream);
}

void launch_window_backward_data(DType dtype, const WindowShape& shape, int multiprocessors,
                                 const std::byte* d_out, const std::byte* weight, std::byte* d_in,
                                 const WindowNorm& norm, float* partials, cudaStream_t stream) {
  const int blocks = window_blocks(shape, multiprocessors);
  with_half_type_of(dtype, [&]<typename T>(T) {
    const auto launch =
        norm.in ? launch_window<WindowPass::gradient_for_norm, T> : launch_window<WindowPass::gradient, T>;
    launch(shape, blocks, as<T>(d_out), as<T>(weight), as<T>(d_in),
           {as<T>(norm.in), norm.norm.scale, norm.bias, norm.norm.mean, norm.norm.inv_std}, partials, stream);
  });
  if (norm.in)
    launch_finish_norm_sums<2>(partials, blocks * kWindowGroups, shape.n * shape.h * shape.w, kWindowChannels,
                               norm.norm, {}, stream);
}

void launch_window_backward_weights(DType dtype, const WindowShape& shape, int multiprocessors,
                                    const std::byte* in, const std::byte* d_out, float* partials,
                                    std::byte* d_weight, cudaStream_t stream) {
  const int blocks = window_blocks(shape, multiprocessors);
  with_half_type_of(dtype, [&]<typename T>(T) {
    gpu::launch(window_weights<T>, dim3(static_cast<unsigned>(blocks)), dim3(kWindowWeightsThreads),
                kWindowWeightsSharedBytes, stream, shape, static_cast<unsigned>(window_tiles(shape)),
                as<T>(in), as<T>(d_out), partials);
    launch_finish_sums(partials, blocks, kWindowWeights, as<T>(d_weight), stream);
  });
}

}  // namespace plumb::cuda
