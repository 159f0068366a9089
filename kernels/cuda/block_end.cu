#include "kernels/cuda/block_end.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/finish_sums.h"
#include "kernels/cuda/norm_coefficients.h"
#include "kernels/cuda/norm_tile.h"

namespace plumb::cuda {
namespace {

// In shared memory lie chunks of 16 bytes, 8 elements.
constexpr int kFactorChunks = kBlockEndStep / 8;  // of a pixel's factors in a step
constexpr int kWarpTiles = kBlockEndRows / 64;    // of 16 pixels
// A tile of kChannels.
template <int kChannels>
constexpr int kTileChunks = kChannels / 8;  // of a pixel's or a weight's channels
template <int kChannels>
constexpr int kWarpChunks = kTileChunks<kChannels> / 2;
template <int kChannels>
constexpr int kStoredRows = 32 / kWarpChunks<kChannels>;  // of a warp, at once
template <int kChannels>
constexpr int kSummingThreads = kBlockEndThreads / kTileChunks<kChannels>;  // that sum the same channels
template <int kChannels>
constexpr int kStageChunks = kBlockEndRows* kFactorChunks + kBlockEndStep* kTileChunks<kChannels>;

// What follows the product.
enum class End {
  gradient,  // + the other gradient, masked by bits
  forward,   // + shift + shortcut, ReLU, which leaves the bits
  through    // back through the ReLU of the norm in front, whose sums follow
};

struct NormMeans {
  const float *norm, *shortcut;  // [channels]
};

// Addresses of the whole tensors, [pixels, channels] where nothing else is said; null where the End has none.
template <typename T>
struct EndTensors {
  const T *left = nullptr, *weight = nullptr;  // [pixels, outputs], [outputs, channels]
  const T *second_left = nullptr,
          *second_weight = nullptr;  // through: [pixels, channels], [channels, channels]
  const T* added = nullptr;          // the other gradient, or the shortcut
  const float* scale_shift =
      nullptr;  // [2, channels]; forward: of the block's last norm, through: of the one in front
  const float* added_scale_shift = nullptr;  // forward: [2, channels], or null
  const float* shift = nullptr;         // through: [channels + 1], the last one multiplies the second product
  const unsigned char* mask = nullptr;  // gradient
  unsigned char* made_mask = nullptr;   // forward
  T* out = nullptr;
  const T *norm_in = nullptr, *shortcut_in = nullptr;
  NormMeans means{};
  float* partials = nullptr;
};

__device__ int own_lane() {
  return static_cast<int>(threadIdx.x % 32);
}
__device__ int own_warp() {
  return static_cast<int>(threadIdx.x / 32);
}

// Where a row's chunk lies, so that a column of 8 rows spreads over all banks; alike in the next 8 rows.
template <int kRowChunks>
__device__ constexpr int chunk_at(int row, int chunk) {
  return row * kRowChunks + (chunk ^ (row & 7));
}

// Starts to copy kRows rows of kRowChunks chunks; the last of `rows` stands for those behind it.
template <int kRowChunks, int kRows, typename T>
__device__ void hold_rows(const T* from, int stride, int rows, uint4* held) {
  constexpr int kRowsAtOnce = kBlockEndThreads / kRowChunks;
  const int row = static_cast<int>(threadIdx.x / kRowChunks),
            chunk = static_cast<int>(threadIdx.x % kRowChunks);
  held += chunk_at<kRowChunks>(row, chunk);
  from += chunk * 8;
#pragma unroll
  for (int down = 0; down < kRows; down += kRowsAtOnce)
    gpu::copy_to_shared(held + down * kRowChunks, from + min(row + down, rows - 1) * stride, true);
}

// The mask of two adjacent elements, 16 bits each, from their bits.
__device__ constexpr unsigned mask_of_pair(unsigned bits) {
  return (bits & 1) * 0xffffU | (bits >> 1 & 1) * 0xffff0000U;
}

// A warp's sums: 16-pixel tiles x tiles of 8 channels, as multiply_add() shares them out among lanes.
template <int kChannels>
using WarpSums = float[kWarpTiles][kWarpChunks<kChannels>][4];

// += left weight of one step.
template <typename T, int kChannels>
__device__ void multiply_step(const uint4* left, const uint4* weights, WarpSums<kChannels>& sums) {
  constexpr int kRowChunks = kTileChunks<kChannels>;
  const int lane = own_lane(), warp = own_warp(), first = warp % 2 * kWarpChunks<kChannels> + lane / 16;
  left += warp / 2 * 16 * kWarpTiles * kFactorChunks;
#pragma unroll
  for (int part = 0; part < kBlockEndStep / 16; ++part) {
    unsigned pixels[kWarpTiles][4];
#pragma unroll
    for (int tile = 0; tile < kWarpTiles; ++tile)
      gpu::load_matrices(pixels[tile], left + tile * 16 * kFactorChunks +
                                           chunk_at<kFactorChunks>(lane % 16, part * 2 + lane / 16));
#pragma unroll
    for (int pair = 0; pair < kWarpChunks<kChannels> / 2; ++pair) {
      unsigned factors[4];
      gpu::load_transposed_matrices(
          factors, weights + part * 16 * kRowChunks + chunk_at<kRowChunks>(lane % 16, first + pair * 2));
#pragma unroll
      for (int tile = 0; tile < kWarpTiles; ++tile) {
        gpu::multiply_add<T>(sums[tile][2 * pair], pixels[tile], factors[0], factors[1]);
        gpu::multiply_add<T>(sums[tile][2 * pair + 1], pixels[tile], factors[2], factors[3]);
      }
    }
  }
}

// The channels of the tile that a lane has in a warp's chunk of sums: this one and the next.
template <int kChannels>
__device__ int channel_in_tile(int chunk) {
  return (own_warp() % 2 * kWarpChunks<kChannels> + chunk) * 8 + own_lane() % 4 * 2;
}

// What goes with a channel's sums, in shared memory where the gradient's mask would lie: [2, kChannels] the
// shift and the factor of what is held, then what the second product is multiplied by.
constexpr int kPowerAt = 2 * kBlockEndChannels;
static_assert((kPowerAt + 1) * sizeof(float) <= kBlockEndRows * sizeof(uint4));

template <End kEnd, int kChannels, typename T>
__device__ void hold_line(const EndTensors<T>& tensors, int channels, int first_channel, float* line) {
  const int thread = static_cast<int>(threadIdx.x), channel = first_channel + thread;
  if (thread < kChannels) {
    if constexpr (kEnd == End::through) {
      line[thread] = tensors.shift[channel];
    } else {
      const float* const added = tensors.added_scale_shift;
      line[thread] = tensors.scale_shift[channels + channel] + (added ? added[channels + channel] : 0);
      line[kChannels + thread] = added ? added[channel] : 1;
    }
  } else if (kEnd == End::through && thread == kChannels) {
    line[kPowerAt] = tensors.shift[channels];
  }
}

// sums * factor + shift, of the line.
template <int kChannels>
__device__ void add_shift(WarpSums<kChannels>& sums, float factor, const float* line) {
#pragma unroll
  for (int chunk = 0; chunk < kWarpChunks<kChannels>; ++chunk) {
    float shift[2];
    load<2>(line + channel_in_tile<kChannels>(chunk), shift);
#pragma unroll
    for (int tile = 0; tile < kWarpTiles; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[tile][chunk][i] = sums[tile][chunk][i] * factor + shift[i % 2];
  }
}

// Adds the sums to what is held at their places, which is multiplied by its factors, if those aren't null;
// rounds once.
template <typename T, End kEnd, int kChannels>
__device__ void put_sums(const WarpSums<kChannels>& sums, const float* factors, uint4* held) {
  constexpr int kRowChunks = kTileChunks<kChannels>, kChunks = kWarpChunks<kChannels>;
  const int lane = own_lane(), warp = own_warp();
  held += warp / 2 * 16 * kWarpTiles * kRowChunks;
#pragma unroll
  for (int part = 0; part < 2 * kWarpTiles; ++part) {
    const auto pair_at = [&](int chunk) {
      return reinterpret_cast<T*>(held + part * 8 * kRowChunks +
                                  chunk_at<kRowChunks>(lane / 4, warp % 2 * kChunks + chunk)) +
             lane % 4 * 2;
    };
    float values[kChunks][2] = {};  // all are read before any is stored
    if constexpr (kEnd != End::through) {
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) load<2>(pair_at(chunk), values[chunk]);
    }
    if (kEnd == End::forward && factors) {
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        float factor[2];
        load<2>(factors + channel_in_tile<kChannels>(chunk), factor);
        values[chunk][0] *= factor[0], values[chunk][1] *= factor[1];
      }
    }
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      values[chunk][0] += sums[part / 2][chunk][part % 2 * 2];
      values[chunk][1] += sums[part / 2][chunk][part % 2 * 2 + 1];
      store<2>(pair_at(chunk), values[chunk]);
    }
  }
}

// The part of the tile that a thread stores: 8 channels of every kStoredRows-th pixel of its warp's.
template <int kChannels>
struct OwnPart {
  int row, chunk;  // the first pixel, and the chunk of its channels
  __device__ OwnPart()
      : row(own_warp() / 2 * 16 * kWarpTiles + own_lane() / kWarpChunks<kChannels>),
        chunk(own_warp() % 2 * kWarpChunks<kChannels> + own_lane() % kWarpChunks<kChannels>) {}
  // In a tile held in shared memory, `down` pixels below the first.
  __device__ int held_at(int down) const {
    constexpr int kRowChunks = kTileChunks<kChannels>;
    return (row - row % 8 + down / 8 * 8) * kRowChunks + chunk_at<kRowChunks>(row % 8 + down % 8, chunk);
  }
  // In a tensor, from the tile's first element on.
  __device__ std::int64_t at(int stride, int down) const {
    return std::int64_t{row + down} * stride + chunk * 8;
  }
};
template <int kChannels>
constexpr int kOwnPixels = 16 * kWarpTiles / kStoredRows<kChannels>;
template <typename T, int kChannels>
using OwnPixels = Packed<T, 8>[kOwnPixels<kChannels>];

// Loads the thread's pixels of a tensor shaped like out; zeros past its end.
template <typename T, int kChannels>
__device__ void load_own(const T* from, int stride, int rows, OwnPixels<T, kChannels>& pixels) {
  const OwnPart<kChannels> own;
  from += own.at(stride, 0);
#pragma unroll
  for (int i = 0; i < kOwnPixels<kChannels>; ++i, from += kStoredRows<kChannels> * stride)
    pixels[i] = own.row + i * kStoredRows<kChannels> < rows ? load_packed<8>(from) : Packed<T, 8>{};
}

// A bit for each of 8 elements that the ReLU lets pass: of `in`, or of scale * in + shift.
template <typename T>
__device__ unsigned passing(const Packed<T, 8>& in) {
  unsigned bits = 0;
#pragma unroll
  for (int c = 0; c < 8; ++c) bits |= static_cast<unsigned>(!(in.at(c) <= 0)) << c;
  return bits;
}
template <typename T>
__device__ unsigned passing(const Packed<T, 8>& in, const float (&scale)[8], const float (&shift)[8]) {
  unsigned bits = 0;
#pragma unroll
  for (int c = 0; c < 8; ++c) bits |= static_cast<unsigned>(!(scale[c] * in.at(c) + shift[c] <= 0)) << c;
  return bits;
}

// Stores the warp's part of the tile, masked: 128 bytes of a pixel per quarter of a warp, with 64
// channels 64. Leaves what the thread sums in `sums`, [kSummingThreads, kSums, kChannels]: the gradient, then
// its products with the norms' inputs. `tensors` begin at the tile.
template <typename T, End kEnd, int kChannels, int kSums>
__device__ void store_masked(const EndTensors<T>& tensors, const uint4* held, const unsigned char* bits,
                             int stride, int rows, const uint4* norm_in,
                             const OwnPixels<T, kChannels>& shortcut_in, float* sums) {
  const OwnPart<kChannels> own;
  float center[8] = {}, shortcut_center[8] = {}, scale[8] = {}, shift[8] = {}, own_sums[kSums + 1][8] = {};
  if constexpr (kSums > 1) load<8>(tensors.means.norm + own.chunk * 8, center);
  if constexpr (kSums > 2) load<8>(tensors.means.shortcut + own.chunk * 8, shortcut_center);
  if constexpr (kEnd == End::through) {
    load<8>(tensors.scale_shift + own.chunk * 8, scale);
    load<8>(tensors.scale_shift + stride + own.chunk * 8, shift);
  }
#pragma unroll
  for (int i = 0; i < kOwnPixels<kChannels>; ++i) {
    const int down = i * kStoredRows<kChannels>;
    const uint4 values = held[own.held_at(down)];
    unsigned mask = 0;
    if constexpr (kEnd == End::gradient)
      mask = bits[(own.row + down) * kTileChunks<kChannels> + own.chunk];
    else if constexpr (kEnd == End::forward)
      mask = passing(load_packed<8>(reinterpret_cast<const T*>(&values)));
    else
      mask = passing(load_packed<8>(reinterpret_cast<const T*>(norm_in + own.held_at(down))), scale, shift);
    if (own.row + down >= rows) continue;
    const uint4 masked = make_uint4(values.x & mask_of_pair(mask), values.y & mask_of_pair(mask >> 2),
                                    values.z & mask_of_pair(mask >> 4), values.w & mask_of_pair(mask >> 6));
    *reinterpret_cast<uint4*>(tensors.out + own.at(stride, down)) = masked;
    if constexpr (kEnd == End::forward)
      tensors.made_mask[own.at(stride, down) / 8] = static_cast<unsigned char>(mask);
    if constexpr (kSums > 0) {
      const auto gradient = load_packed<8>(reinterpret_cast<const T*>(&masked));
#pragma unroll
      for (int c = 0; c < 8; ++c) own_sums[0][c] += gradient.at(c);
      if constexpr (kSums > 1) {
        const auto in = load_packed<8>(reinterpret_cast<const T*>(norm_in + own.held_at(down)));
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          own_sums[1][c] += gradient.at(c) * (in.at(c) - center[c]);
          if constexpr (kSums > 2)
            own_sums[2][c] += gradient.at(c) * (shortcut_in[i].at(c) - shortcut_center[c]);
        }
      }
    }
  }
  sums += (own.row / (16 * kWarpTiles) * kStoredRows<kChannels> + own.row % kStoredRows<kChannels>)*kSums *
              kChannels +
          own.chunk * 8;
#pragma unroll
  for (int k = 0; k < kSums; ++k) store<8>(sums + k * kChannels, own_sums[k]);
}

// Over the tile: partials [sums, stride].
template <int kChannels, int kSums>
__device__ void leave_sums(const float* sums, int stride, float* partials) {
#pragma unroll
  for (int part = 0; part < kSums * kChannels; part += kBlockEndThreads) {
    const int at = part + static_cast<int>(threadIdx.x);
    if (at >= kSums * kChannels) return;
    float total = 0;
#pragma unroll
    for (int thread = 0; thread < kSummingThreads<kChannels>; ++thread)
      total += sums[thread * kSums * kChannels + at];
    partials[at / kChannels * stride + at % kChannels] = total;
  }
}

// Blocks of the same pixels are neighbours, so the left factors come from memory once. Per element of out:
// reads 2 bytes of `added` and 2 * outputs / channels of the left factors, writes 2; reads or writes a bit of
// the mask; for each norm 2 more of its input, and 4 bytes for each sum of a channel over 128 pixels. Bound
// by memory up to 128 outputs; above, the factors, which each block reads from the L2 cache, take as long.
template <typename T, End kEnd, int kChannels, int kSums>
__global__ void __launch_bounds__(kBlockEndThreads, 2) block_end(BlockEndShape shape, EndTensors<T> tensors) {
  constexpr int kLeftChunks = kBlockEndRows * kFactorChunks, kRowChunks = kTileChunks<kChannels>,
                kStages = block_end_stages(kChannels);
  constexpr bool kAdds = kEnd != End::through;
  uint4* const bits = gpu::dynamic_shared<uint4>();
  auto* const line = reinterpret_cast<float*>(bits);
  // The stages are taken in turn.
  const auto stage = [stages = bits + kBlockEndRows](int turn) {
    return stages + turn * kStageChunks<kChannels>;
  };
  const auto turn_after = [](int turn, int more) {  // more: below kStages
    return turn + more < kStages ? turn + more : turn + more - kStages;
  };
  const auto across = static_cast<unsigned>(shape.channels / kChannels);
  const std::int64_t first_pixel = std::int64_t{blockIdx.x / across} * kBlockEndRows;
  const int first_channel = static_cast<int>(blockIdx.x % across) * kChannels;
  const int rows = static_cast<int>(min(std::int64_t{kBlockEndRows}, shape.pixels - first_pixel));
  // Of the tile, in tensors like out. Not kept through the loop: registers are short.
  const auto first = [&] { return first_pixel * shape.channels + first_channel; };

  const bool has_pixels = own_warp() / 2 * 16 * kWarpTiles < rows;
  const int second_steps = kEnd == End::through ? shape.channels / kBlockEndStep : 0;
  const int steps = second_steps + shape.outputs / kBlockEndStep;
  // The factors of each step, then what is added, then the norm's input: a stage each.
  const auto hold = [&](int item, uint4* into) {
    const auto hold_tile = [&](const T* from) {
      hold_rows<kRowChunks, kBlockEndRows>(from + first(), shape.channels, rows, into);
    };
    const auto hold_factors = [&](const T* left, const T* weight, int outputs, int output) {
      hold_rows<kFactorChunks, kBlockEndRows>(left + first_pixel * outputs + output, outputs, rows, into);
      hold_rows<kRowChunks, kBlockEndStep>(weight + output * shape.channels + first_channel, shape.channels,
                                           kBlockEndStep, into + kLeftChunks);
    };
    if (item < second_steps)
      hold_factors(tensors.second_left, tensors.second_weight, shape.channels, item * kBlockEndStep);
    else if (item < steps)
      hold_factors(tensors.left, tensors.weight, shape.outputs, (item - second_steps) * kBlockEndStep);
    else if (item < steps + kAdds + (kSums > 1))
      hold_tile(kAdds && item == steps ? tensors.added : tensors.norm_in);
  };
  if constexpr (kEnd != End::gradient)
    hold_line<kEnd, kChannels>(tensors, shape.channels, first_channel, line);
  else if (threadIdx.x < static_cast<unsigned>(rows))
    gpu::copy_to_shared(
        bits + threadIdx.x,
        tensors.mask + (first() + static_cast<std::int64_t>(threadIdx.x) * shape.channels) / 8, true);
#pragma unroll
  for (int item = 0; item < kStages; ++item) {
    hold(item, stage(item));
    gpu::end_copy_group();
  }

  WarpSums<kChannels> sums = {};
  int turn = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step, turn = turn_after(turn, 1)) {
    if (step == 0)
      gpu::wait_for_copy_groups<kStages - 1>();
    else
      gpu::wait_for_copy_groups<kStages - 2>();
    __syncthreads();
    if (step > 0) {  // the stage of the step before is free
      hold(step + kStages - 1, stage(turn_after(turn, kStages - 1)));
      gpu::end_copy_group();
    }
    if (kEnd == End::forward && step == 0) add_shift<kChannels>(sums, 0, line);
    if (kEnd == End::through && step == second_steps) add_shift<kChannels>(sums, line[kPowerAt], line);
    if (has_pixels) multiply_step<T, kChannels>(stage(turn), stage(turn) + kLeftChunks, sums);
  }
  OwnPixels<T, kChannels> own_shortcut_in;
  if constexpr (kSums > 2)
    load_own<T, kChannels>(tensors.shortcut_in + first(), shape.channels, rows, own_shortcut_in);
  gpu::wait_for_copy_groups<0>();
  __syncthreads();
  uint4* const held = stage(kAdds ? turn : turn_after(turn, 1));
  put_sums<T, kEnd, kChannels>(sums, tensors.added_scale_shift ? line + kChannels : nullptr, held);
  __syncwarp();
  if constexpr (kSums > 1) tensors.means.norm += first_channel;
  if constexpr (kSums > 2) tensors.means.shortcut += first_channel;
  if constexpr (kEnd == End::through) tensors.scale_shift += first_channel;
  if constexpr (kEnd == End::forward) tensors.made_mask += first() / 8;
  tensors.out += first();
  auto* const left_sums = reinterpret_cast<float*>(stage(turn_after(turn, kStages - 1)));
  store_masked<T, kEnd, kChannels, kSums>(tensors, held, reinterpret_cast<const unsigned char*>(bits),
                                          shape.channels, rows, stage(turn_after(turn, kAdds)),
                                          own_shortcut_in, left_sums);
  if constexpr (kSums > 0) {
    __syncthreads();
    leave_sums<kChannels, kSums>(
        left_sums, shape.channels,
        tensors.partials + std::int64_t{blockIdx.x / across} * kSums * shape.channels + first_channel);
  }
}

// A block finishes the sums of 8 channels, in a fixed order. Reads 4 bytes per sum, channel and row of tiles
// from the L2 cache: bound by its latency.
template <int kSums>
__global__ void __launch_bounds__(kFinishedChannels* kFinishingRows, 1)
    finish_norm_sums(const float* partials, int rows, std::int64_t pixels, int channels, NormBackward norm,
                     NormBackward shortcut) {
  const int channel = static_cast<int>(blockIdx.x * kFinishedChannels + threadIdx.x);
  FinishedSums<kSums> sums;
#pragma unroll 4
  for (int row = static_cast<int>(threadIdx.y); row < rows; row += kFinishingRows) {
    const float* const from = partials + std::int64_t{row} * kSums * channels + channel;
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums.of[i] += from[i * channels];
  }
  merge_rows(sums);
  if (threadIdx.y > 0) return;
  if constexpr (kSums == 1)
    norm.d_bias[channel] = sums.of[0];
  else
    NormGradientSums{sums.of[0], sums.of[1]}.settle(norm, pixels, channels, channel);
  if constexpr (kSums > 2)
    NormGradientSums{sums.of[0], sums.of[2]}.settle(shortcut, pixels, channels, channel);
}

template <typename T, End kEnd, int kChannels, int kSums>
void launch_end(const BlockEndShape& shape, const EndTensors<T>& tensors, const NormBackward& norm,
                const NormBackward& shortcut, cudaStream_t stream) {
  const std::int64_t tiles = block_end_rows(shape) * (shape.channels / kChannels);
  gpu::launch(block_end<T, kEnd, kChannels, kSums>, dim3(blocks_for(tiles, 1)), dim3(kBlockEndThreads),
              static_cast<std::size_t>(block_end_shared_bytes(kChannels)), stream, shape, tensors);
  if constexpr (kSums > 0) {
    const dim3 block(kFinishedChannels, kFinishingRows);
    gpu::launch(finish_norm_sums<kSums>, dim3(blocks_for(shape.channels, kFinishedChannels)), block,
                merge_bytes<FinishedSums<kSums>>(block), stream, tensors.partials,
                static_cast<int>(block_end_rows(shape)), shape.pixels, shape.channels, norm, shortcut);
  }
}

}  // namespace

void launch_block_end(DType dtype, const BlockEndShape& shape, const BlockEndOperands& operands,
                      cudaStream_t stream) {
  with_half_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    const EndTensors<T> tensors{.left = as<T>(operands.d_out),
                                .weight = as<T>(operands.weight),
                                .added = as<T>(operands.added),
                                .mask = as<unsigned char>(operands.mask),
                                .out = as<T>(operands.d_in),
                                .norm_in = as<T>(operands.norm_in),
                                .shortcut_in = as<T>(operands.shortcut_in),
                                .means = {operands.norm.mean, operands.shortcut.mean},
                                .partials = operands.partials};
    const auto launch = [&]<int kSums>(std::integral_constant<int, kSums>) {
      launch_end<T, End::gradient, kBlockEndChannels, kSums>(shape, tensors, operands.norm, operands.shortcut,
                                                             stream);
    };
    if (operands.shortcut_in)
      launch(std::integral_constant<int, 3>{});
    else if (operands.norm_in)
      launch(std::integral_constant<int, 2>{});
    else if (operands.norm.d_bias)
      launch(std::integral_constant<int, 1>{});
    else
      launch(std::integral_constant<int, 0>{});
  });
}

void launch_block_end_forward(DType dtype, const BlockEndShape& shape, const BlockEndOutput& operands,
                              cudaStream_t stream) {
  with_half_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    launch_end<T, End::forward, kBlockEndChannels, 0>(shape,
                                                      {.left = as<T>(operands.in),
                                                       .weight = as<T>(operands.weight),
                                                       .added = as<T>(operands.residual),
                                                       .scale_shift = operands.scale_shift,
                                                       .added_scale_shift = operands.residual_scale_shift,
                                                       .made_mask = operands.mask,
                                                       .out = as<T>(operands.out)},
                                                      {}, {}, stream);
  });
}

void launch_block_end_through(DType dtype, const BlockEndShape& shape, const BlockEndInputGradient& operands,
                              cudaStream_t stream) {
  with_half_type_of(dtype, [&](auto type) {
    using T = decltype(type);
    const EndTensors<T> tensors{.left = as<T>(operands.d_out),
                                .weight = as<T>(operands.weight),
                                .second_left = as<T>(operands.in),
                                .second_weight = as<T>(operands.factors),
                                .scale_shift = operands.scale_shift,
                                .shift = operands.shift,
                                .out = as<T>(operands.d_in),
                                .norm_in = as<T>(operands.norm_in),
                                .means = {operands.norm.mean, nullptr},
                                .partials = operands.partials};
    if (shape.channels % kBlockEndChannels == 0)
      launch_end<T, End::through, kBlockEndChannels, 2>(shape, tensors, operands.norm, {}, stream);
    else
      launch_end<T, End::through, kBlockEndChannels / 2, 2>(shape, tensors, operands.norm, {}, stream);
  });
}

}  // namespace plumb::cuda
