// Transformed tensors have a plane for each of the 36 points: inputs [block of 16 channels][tile][16],
// weights [panel of 32 output channels][input channel][32], products and gradients of results
// [panel][tile][32]. In each plane a matrix product; its inner loop keeps 8 rows x 32 columns in registers.
#include "kernels/cpu/winograd_loops.h"

#include <algorithm>

#include "kernels/cpu/threads.h"
#include "kernels/cpu/winograd_tiles.h"

namespace plumb::cpu {
namespace {

using winograd::Pixels;
using winograd::Planes;

constexpr std::int64_t kBlockChannels = 16, kBlockWeights = 256;  // of the layouts
constexpr std::int64_t kTaps = 9;
constexpr int kInputSide = 6, kResultSide = 4, kKernelSide = 3;

// The sums of kWinogradRows x kWinogradPanel products.
struct Sums {
  __m512 left[kWinogradRows], right[kWinogradRows];

  PLUMB_AVX512_INLINE void clear() {
#pragma GCC unroll 8
    for (int row = 0; row < kWinogradRows; ++row) left[row] = right[row] = _mm512_setzero_ps();
  }
  PLUMB_AVX512_INLINE void load(const float* from) {
#pragma GCC unroll 8
    for (int row = 0; row < kWinogradRows; ++row) {
      left[row] = _mm512_load_ps(from + row * kWinogradPanel);
      right[row] = _mm512_load_ps(from + row * kWinogradPanel + kBlockChannels);
    }
  }
  PLUMB_AVX512_INLINE void store(float* to) const {
#pragma GCC unroll 8
    for (int row = 0; row < kWinogradRows; ++row) {
      _mm512_store_ps(to + row * kWinogradPanel, left[row]);
      _mm512_store_ps(to + row * kWinogradPanel + kBlockChannels, right[row]);
    }
  }
  // Adds factors [kWinogradRows], `stride` apart, times columns [32].
  PLUMB_AVX512_INLINE void add(const float* factors, std::int64_t stride, const float* columns) {
    const __m512 first = _mm512_load_ps(columns), second = _mm512_load_ps(columns + kBlockChannels);
#pragma GCC unroll 8
    for (int row = 0; row < kWinogradRows; ++row) {
      const __m512 factor = _mm512_set1_ps(factors[row * stride]);
      left[row] = _mm512_fmadd_ps(factor, first, left[row]);
      right[row] = _mm512_fmadd_ps(factor, second, right[row]);
    }
  }
};

// products [8 tiles][32] (+)= inputs [blocks][8 tiles][16], blocks `block_stride` apart, times weights
// [16 blocks][32].
PLUMB_AVX512 void multiply_tiles(const float* inputs, std::int64_t block_stride, std::int64_t blocks,
                                 const float* weights, float* products, bool adds) {
  Sums sums;
  adds ? sums.load(products) : sums.clear();
  for (std::int64_t block = 0; block < blocks; ++block, inputs += block_stride)
    for (std::int64_t channel = 0; channel < kBlockChannels; ++channel, weights += kWinogradPanel)
      sums.add(inputs + channel, kBlockChannels, weights);
  sums.store(products);
}

// d_weights [8 channels][32] (+)= inputs [tiles][8 of 16 channels]^T times gradients [tiles][32].
PLUMB_AVX512 void multiply_gradients(const float* inputs, const float* gradients, std::int64_t tiles,
                                     float* d_weights, bool adds) {
  Sums sums;
  adds ? sums.load(d_weights) : sums.clear();
  for (std::int64_t tile = 0; tile < tiles; ++tile)
    sums.add(inputs + tile * kBlockChannels, 1, gradients + tile * kWinogradPanel);
  sums.store(d_weights);
}

PLUMB_AVX512 void transform_inputs(const Pixels<const float, false>& from, const Planes<float>& to) {
  const bool is_inside = from.top >= 0 && from.left >= 0 && from.top + kInputSide <= from.height &&
                         from.left + kInputSide <= from.width;
  if (is_inside)
    winograd::transform_tile<winograd::transform_inputs, kInputSide, kInputSide>(
        Pixels<const float, true>{from.block, from.top, from.left, from.height, from.width}, to);
  else
    winograd::transform_tile<winograd::transform_inputs, kInputSide, kInputSide>(from, to);
}

PLUMB_AVX512 void transform_gradients(const Pixels<const float, false>& from, const Planes<float>& to) {
  winograd::transform_tile<winograd::transform_gradients, kResultSide, kInputSide>(from, to);
}

PLUMB_AVX512 void transform_products(const Planes<const float>& from, const Pixels<float, false>& to) {
  winograd::transform_tile<winograd::transform_products, kInputSide, kResultSide>(from, to);
}

PLUMB_AVX512 void transform_weights(const Planes<const float>& from, const Planes<float>& to) {
  winograd::transform_tile<winograd::transform_weights, kKernelSide, kInputSide>(from, to);
}

PLUMB_AVX512 void transform_weight_sums(const Planes<const float>& from, const Planes<float>& to) {
  winograd::transform_tile<winograd::transform_weight_sums, kInputSide, kKernelSide>(from, to);
}

PLUMB_AVX512 void clear(const Planes<float>& planes) {
  for (int y = 0; y < kInputSide; ++y)
    for (int x = 0; x < kInputSide; ++x) planes.store(y, x, _mm512_setzero_ps());
}

// Where tile `index` of all images starts.
struct TilePlace {
  std::int64_t image = 0, top = 0, left = 0;

  TilePlace(const WinogradPlan& plan, std::int64_t index)
      : image(index / (plan.down * plan.across)),
        top(index / plan.across % plan.down * kWinogradTile),
        left(index % plan.across * kWinogradTile) {}
  // Block `index` of images with `channels` channels.
  template <typename Float>
  Float* block(Float* images, std::int64_t channels, std::int64_t index, std::int64_t pixels) const {
    return images + (image * channels / kBlockChannels + index) * pixels * kBlockChannels;
  }
};

// Tiles first … first + count - 1 of all, of one block of channels; behind the last tile zeros.
void transform_input_tiles(const ConvShape& s, const WinogradPlan& plan, const float* in, std::int64_t block,
                           std::int64_t first, std::int64_t count, float* inputs) {
  for (std::int64_t tile = 0; tile < count; ++tile) {
    const Planes<float> to{.first = inputs + (block * plan.kept + tile) * kBlockChannels,
                           .plane = plan.in_plane};
    const TilePlace at(plan, first + tile);
    if (first + tile < plan.tiles)
      transform_inputs({.block = at.block(in, s.in_channels, block, s.in_height * s.in_width),
                        .top = at.top - s.padding,
                        .left = at.left - s.padding,
                        .height = s.in_height,
                        .width = s.in_width},
                       to);
    else
      clear(to);
  }
}

// [tap][in][out] to [8 - tap][out][in]
void turn(const float* block, float* turned) {
  for (std::int64_t tap = 0; tap < kTaps; ++tap)
    for (std::int64_t out = 0; out < kBlockChannels; ++out)
      for (std::int64_t in = 0; in < kBlockChannels; ++in)
        turned[(kTaps - 1 - tap) * kBlockWeights + out * kBlockChannels + in] =
            block[tap * kBlockWeights + in * kBlockChannels + out];
}

// A panel of the shape's weights, for some blocks of input channels. is_turned: `weight` has the shape's
// output channels as its inputs.
void transform_panel(const ConvShape& s, const WinogradPlan& plan, const float* weight, bool is_turned,
                     std::int64_t panel, std::int64_t first_block, std::int64_t blocks, float* weights) {
  const std::int64_t in_blocks = s.in_channels / kBlockChannels, out_blocks = s.out_channels / kBlockChannels;
  for (std::int64_t block = 0; block < blocks; ++block)
    for (std::int64_t half = 0; half < 2; ++half) {
      const std::int64_t in = first_block + block, out = 2 * panel + half;
      alignas(64) float turned[kTaps * kBlockWeights];
      const float* from =
          weight + (is_turned ? in * out_blocks + out : out * in_blocks + in) * kTaps * kBlockWeights;
      if (is_turned) {
        turn(from, turned);
        from = turned;
      }
      for (std::int64_t channel = 0; channel < kBlockChannels; ++channel)
        transform_weights(
            {.first = from + channel * kBlockChannels, .plane = kBlockWeights, .columns = kKernelSide},
            {.first = weights + (block * kBlockChannels + channel) * kWinogradPanel + half * kBlockChannels,
             .plane = plan.weight_plane});
    }
}

// The results of all channels of a panel; the first of the tiles is `index` of all.
void store_results(const ConvShape& s, const WinogradPlan& plan, const float* products, std::int64_t index,
                   std::int64_t panel, float* out) {
  for (std::int64_t half = 0; half < 2; ++half)
    for (std::int64_t tile = 0; tile < std::min(plan.at_once, plan.tiles - index); ++tile) {
      const TilePlace at(plan, index + tile);
      transform_products(
          {.first = products + tile * kWinogradPanel + half * kBlockChannels, .plane = plan.out_plane},
          {.block = at.block(out, s.out_channels, 2 * panel + half, s.out_height * s.out_width),
           .top = at.top,
           .left = at.left,
           .height = s.out_height,
           .width = s.out_width});
    }
}

// A convolution's operands and its share of the workspace.
struct Convolution {
  const ConvShape& shape;
  const WinogradPlan& plan;
  const float *in = nullptr, *weight = nullptr;
  bool is_turned = false;
  float* out = nullptr;
  std::int64_t in_blocks() const { return shape.in_channels / kBlockChannels; }
  std::int64_t panels() const { return shape.out_channels / kWinogradPanel; }
};

// One panel: weights are transformed, used while they are in the cache, and forgotten.
void compute_panel(const Convolution& c, const float* inputs, std::int64_t panel, float* weights,
                   float* products) {
  const WinogradPlan& plan = c.plan;
  const std::int64_t most = plan.channels_at_once / kBlockChannels;
  for (std::int64_t block = 0; block < c.in_blocks(); block += most) {
    const std::int64_t blocks = std::min(most, c.in_blocks() - block);
    transform_panel(c.shape, plan, c.weight, c.is_turned, panel, block, blocks, weights);
    for (std::int64_t point = 0; point < kWinogradPoints; ++point)
      for (std::int64_t tile = 0; tile < plan.at_once; tile += kWinogradRows)
        multiply_tiles(inputs + point * plan.in_plane + (block * plan.kept + tile) * kBlockChannels,
                       plan.kept * kBlockChannels, blocks, weights + point * plan.weight_plane,
                       products + point * plan.out_plane + tile * kWinogradPanel, block > 0);
  }
  store_results(c.shape, plan, products, 0, panel, c.out);
}

void convolve_by_panels(const Convolution& c, int threads, float* workspace) {
  const WinogradPlan& plan = c.plan;
  float* const inputs = workspace;
  float* const weights = inputs + kWinogradPoints * plan.in_plane;
  float* const products = weights + threads * kWinogradPoints * plan.weight_plane;
#pragma omp parallel for collapse(2) schedule(static)
  for (std::int64_t block = 0; block < c.in_blocks(); ++block)
    for (std::int64_t tile = 0; tile < plan.kept; tile += kWinogradRows)
      transform_input_tiles(c.shape, plan, c.in, block, tile, kWinogradRows, inputs + tile * kBlockChannels);
#pragma omp parallel for schedule(static)
  for (int thread = 0; thread < threads; ++thread)
    for (std::int64_t panel = thread * c.panels() / threads; panel < (thread + 1) * c.panels() / threads;
         ++panel)
      compute_panel(c, inputs, panel, weights + thread * kWinogradPoints * plan.weight_plane,
                    products + thread * kWinogradPoints * plan.out_plane);
}

// All panels of some tiles, the first of which is `index` of all.
void compute_tiles(const Convolution& c, const float* weights, std::int64_t index, float* inputs,
                   float* products) {
  const WinogradPlan& plan = c.plan;
  for (std::int64_t block = 0; block < c.in_blocks(); ++block)
    transform_input_tiles(c.shape, plan, c.in, block, index, plan.at_once, inputs);
  const std::int64_t panel_products = plan.at_once * kWinogradPanel;
  for (std::int64_t first = 0; first < c.panels(); first += plan.panels_at_once) {
    const std::int64_t panels = std::min(plan.panels_at_once, c.panels() - first);
    for (std::int64_t point = 0; point < kWinogradPoints; ++point)
      for (std::int64_t tile = 0; tile < plan.at_once; tile += kWinogradRows)
        for (std::int64_t panel = 0; panel < panels; ++panel)
          multiply_tiles(
              inputs + point * plan.in_plane + tile * kBlockChannels, plan.kept * kBlockChannels,
              c.in_blocks(),
              weights + point * plan.weight_plane + (first + panel) * c.shape.in_channels * kWinogradPanel,
              products + point * plan.out_plane + panel * panel_products + tile * kWinogradPanel, false);
    for (std::int64_t panel = 0; panel < panels; ++panel)
      store_results(c.shape, plan, products + panel * panel_products, index, first + panel, c.out);
  }
}

void convolve_by_tiles(const Convolution& c, int threads, float* workspace) {
  const WinogradPlan& plan = c.plan;
  float* const weights = workspace;
  float* const inputs = weights + kWinogradPoints * plan.weight_plane;
  float* const products = inputs + threads * kWinogradPoints * plan.in_plane;
#pragma omp parallel for schedule(static)
  for (std::int64_t panel = 0; panel < c.panels(); ++panel)
    transform_panel(c.shape, plan, c.weight, c.is_turned, panel, 0, c.in_blocks(),
                    weights + panel * c.shape.in_channels * kWinogradPanel);
  const std::int64_t parts = ceil_div(plan.tiles, plan.at_once);
#pragma omp parallel for schedule(static)
  for (int thread = 0; thread < threads; ++thread)
    for (std::int64_t part = thread * parts / threads; part < (thread + 1) * parts / threads; ++part)
      compute_tiles(c, weights, part * plan.at_once, inputs + thread * kWinogradPoints * plan.in_plane,
                    products + thread * kWinogradPoints * plan.out_plane);
}

void convolve(const ConvShape& shape, int threads, const float* in, const float* weight, bool is_turned,
              float* out, float* workspace) {
  const WinogradPlan plan = plan_winograd(shape, threads);
  const Convolution convolution{
      .shape = shape, .plan = plan, .in = in, .weight = weight, .is_turned = is_turned, .out = out};
  (plan.by_panel ? convolve_by_panels : convolve_by_tiles)(convolution, threads, workspace);
}

// Tiles first … of the gradients of results.
void transform_gradient_tiles(const ConvShape& s, const WinogradPlan& plan, const float* d_out,
                              std::int64_t block, std::int64_t first, std::int64_t count, float* gradients) {
  float* const to = gradients + block / 2 * plan.kept * kWinogradPanel + block % 2 * kBlockChannels;
  for (std::int64_t tile = 0; tile < count; ++tile) {
    const TilePlace at(plan, first + tile);
    transform_gradients({.block = at.block(d_out, s.out_channels, block, s.out_height * s.out_width),
                         .top = at.top,
                         .left = at.left,
                         .height = s.out_height,
                         .width = s.out_width},
                        {.first = to + tile * kWinogradPanel, .plane = plan.out_plane});
  }
}

}  // namespace

void winograd_forward(const ConvShape& shape, int threads, const float* in, const float* weight, float* out,
                      float* workspace) {
  convolve(shape, threads, in, weight, false, out, workspace);
}

void winograd_backward_data(const ConvShape& shape, int threads, const float* d_out, const float* weight,
                            float* d_in, float* workspace) {
  convolve(backward_data_shape(shape), threads, d_out, weight, true, d_in, workspace);
}

void winograd_backward_weights(const ConvShape& s, const float* in, const float* d_out, float* d_weight,
                               float* workspace) {
  const WinogradPlan plan = plan_winograd_weights(s);
  const std::int64_t in_blocks = s.in_channels / kBlockChannels, out_blocks = s.out_channels / kBlockChannels;
  const std::int64_t panels = s.out_channels / kWinogradPanel;
  float* const inputs = workspace;
  float* const gradients = inputs + kWinogradPoints * plan.in_plane;
  float* const sums = gradients + kWinogradPoints * plan.out_plane;
  for (std::int64_t first = 0; first < plan.tiles; first += plan.kept) {
    const std::int64_t count = std::min(plan.kept, plan.tiles - first);
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t block = 0; block < in_blocks + out_blocks; ++block)
      for (std::int64_t tile = 0; tile < count; tile += kWinogradRows) {
        const std::int64_t tiles = std::min(kWinogradRows, count - tile);
        if (block < in_blocks)
          transform_input_tiles(s, plan, in, block, first + tile, tiles, inputs + tile * kBlockChannels);
        else
          transform_gradient_tiles(s, plan, d_out, block - in_blocks, first + tile, tiles,
                                   gradients + tile * kWinogradPanel);
      }
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t point = 0; point < kWinogradPoints; ++point)
      for (std::int64_t panel = 0; panel < panels; ++panel)
        for (std::int64_t channel = 0; channel < s.in_channels; channel += kWinogradRows)
          multiply_gradients(
              inputs + point * plan.in_plane + channel / kBlockChannels * plan.kept * kBlockChannels +
                  channel % kBlockChannels,
              gradients + point * plan.out_plane + panel * plan.kept * kWinogradPanel, count,
              sums + point * plan.weight_plane + (panel * s.in_channels + channel) * kWinogradPanel,
              first > 0);
  }
#pragma omp parallel for collapse(2) schedule(static)
  for (std::int64_t out = 0; out < out_blocks; ++out)
    for (std::int64_t in_block = 0; in_block < in_blocks; ++in_block)
      for (std::int64_t channel = 0; channel < kBlockChannels; ++channel)
        transform_weight_sums(
            {.first = sums +
                      (out / 2 * s.in_channels + in_block * kBlockChannels + channel) * kWinogradPanel +
                      out % 2 * kBlockChannels,
             .plane = plan.weight_plane},
            {.first =
                 d_weight + (out * in_blocks + in_block) * kTaps * kBlockWeights + channel * kBlockChannels,
             .plane = kBlockWeights,
             .columns = kKernelSide});
}

}  // namespace plumb::cpu
