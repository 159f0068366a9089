// Transformed tensors have a plane for each of the 36 points: inputs [block of channels][tile][lanes],
// weights [panel of output channels][input channel][panel], products and gradients of results
// [panel][tile][panel]. In each plane a matrix product; its inner loop keeps some rows of a panel in
// registers.
#include "kernels/cpu/winograd_loops.h"

#include <algorithm>

#include "kernels/cpu/threads.h"
#include "kernels/cpu/winograd_vectors.h"

namespace plumb::cpu {
namespace {

constexpr std::int64_t kTaps = 9;
constexpr int kMostLanes = 16, kKernelSide = 3;

const WinogradVectors& vectors_of(const WinogradPlan& plan) {
  return plan.blocking.lanes == kMostLanes ? kWinogradAvx512 : kWinogradAvx2;
}

// Where tile `index` of all images starts.
struct TilePlace {
  std::int64_t lanes = 0, image = 0, top = 0, left = 0;

  TilePlace(const WinogradPlan& plan, std::int64_t index)
      : lanes(plan.blocking.lanes),
        image(index / (plan.down * plan.across)),
        top(index / plan.across % plan.down * kWinogradTile),
        left(index % plan.across * kWinogradTile) {}
  // Block `index` of images with `channels` channels.
  template <typename Element>
  Element* block(Element* images, std::int64_t channels, std::int64_t index, std::int64_t pixels) const {
    return images + (image * channels / lanes + index) * pixels * lanes;
  }
};

// Tiles first … first + count - 1 of all, of one block of channels; behind the last tile zeros.
template <typename Element>
void transform_input_tiles(const ConvShape& s, const WinogradPlan& plan, const Element* in,
                           std::int64_t block, std::int64_t first, std::int64_t count, float* inputs) {
  const WinogradVectors& vectors = vectors_of(plan);
  for (std::int64_t tile = 0; tile < count; ++tile) {
    const WinogradPlanes<float> to{.first = inputs + (block * plan.kept + tile) * plan.blocking.lanes,
                                   .plane = plan.in_plane};
    const TilePlace at(plan, first + tile);
    if (first + tile < plan.tiles)
      vectors.transform<Element>().inputs(
          {.block = at.block(in, s.in_channels, block, s.in_height * s.in_width),
           .top = at.top - s.padding,
           .left = at.left - s.padding,
           .height = s.in_height,
           .width = s.in_width},
          to);
    else
      vectors.clear(to);
  }
}

// [tap][in][out] to [8 - tap][out][in]
template <typename Element>
void turn(const Element* block, std::int64_t lanes, Element* turned) {
  for (std::int64_t tap = 0; tap < kTaps; ++tap)
    for (std::int64_t out = 0; out < lanes; ++out)
      for (std::int64_t in = 0; in < lanes; ++in)
        turned[((kTaps - 1 - tap) * lanes + out) * lanes + in] = block[(tap * lanes + in) * lanes + out];
}

// A panel of the shape's weights, for some blocks of input channels. is_turned: `weight` has the shape's
// output channels as its inputs.
template <typename Element>
void transform_panel(const ConvShape& s, const WinogradPlan& plan, const Element* weight, bool is_turned,
                     std::int64_t panel, std::int64_t first_block, std::int64_t blocks, float* weights) {
  const std::int64_t lanes = plan.blocking.lanes, panel_channels = plan.blocking.panel();
  const std::int64_t in_blocks = s.in_channels / lanes, out_blocks = s.out_channels / lanes;
  for (std::int64_t block = 0; block < blocks; ++block)
    for (std::int64_t half = 0; half < 2; ++half) {
      const std::int64_t in = first_block + block, out = 2 * panel + half;
      alignas(64) Element turned[kTaps * kMostLanes * kMostLanes];
      const Element* from =
          weight + (is_turned ? in * out_blocks + out : out * in_blocks + in) * kTaps * lanes * lanes;
      if (is_turned) {
        turn(from, lanes, turned);
        from = turned;
      }
      for (std::int64_t channel = 0; channel < lanes; ++channel)
        vectors_of(plan).transform<Element>().weights(
            {.first = from + channel * lanes, .plane = lanes * lanes, .columns = kKernelSide},
            {.first = weights + (block * lanes + channel) * panel_channels + half * lanes,
             .plane = plan.weight_plane});
    }
}

// The results of all channels of a panel; the first of the tiles is `index` of all.
template <typename Element>
void store_results(const ConvShape& s, const WinogradPlan& plan, const float* products, std::int64_t index,
                   std::int64_t panel, Element* out) {
  for (std::int64_t half = 0; half < 2; ++half)
    for (std::int64_t tile = 0; tile < std::min(plan.at_once, plan.tiles - index); ++tile) {
      const TilePlace at(plan, index + tile);
      vectors_of(plan).transform<Element>().products(
          {.first = products + tile * plan.blocking.panel() + half * plan.blocking.lanes,
           .plane = plan.out_plane},
          {.block = at.block(out, s.out_channels, 2 * panel + half, s.out_height * s.out_width),
           .top = at.top,
           .left = at.left,
           .height = s.out_height,
           .width = s.out_width});
    }
}

// A convolution's operands and its share of the workspace.
template <typename Element>
struct Convolution {
  const ConvShape& shape;
  const WinogradPlan& plan;
  const Element *in = nullptr, *weight = nullptr;
  bool is_turned = false;
  Element* out = nullptr;
  std::int64_t in_blocks() const { return shape.in_channels / plan.blocking.lanes; }
  std::int64_t panels() const { return shape.out_channels / plan.blocking.panel(); }
};

// One panel: weights are transformed, used while they are in the cache, and forgotten.
template <typename Element>
void compute_panel(const Convolution<Element>& c, const float* inputs, std::int64_t panel, float* weights,
                   float* products) {
  const WinogradPlan& plan = c.plan;
  const auto [lanes, rows, channel_rows] = plan.blocking;
  const std::int64_t most = plan.channels_at_once / lanes;
  for (std::int64_t block = 0; block < c.in_blocks(); block += most) {
    const std::int64_t blocks = std::min(most, c.in_blocks() - block);
    transform_panel(c.shape, plan, c.weight, c.is_turned, panel, block, blocks, weights);
    for (std::int64_t point = 0; point < kWinogradPoints; ++point)
      for (std::int64_t tile = 0; tile < plan.at_once; tile += rows)
        vectors_of(plan).multiply_tiles(inputs + point * plan.in_plane + (block * plan.kept + tile) * lanes,
                                        plan.kept * lanes, blocks, weights + point * plan.weight_plane,
                                        products + point * plan.out_plane + tile * plan.blocking.panel(),
                                        block > 0);
  }
  store_results(c.shape, plan, products, 0, panel, c.out);
}

template <typename Element>
void convolve_by_panels(const Convolution<Element>& c, int threads, float* workspace) {
  const WinogradPlan& plan = c.plan;
  float* const inputs = workspace;
  float* const weights = inputs + kWinogradPoints * plan.in_plane;
  float* const products = weights + threads * kWinogradPoints * plan.weight_plane;
#pragma omp parallel for collapse(2) schedule(static)
  for (std::int64_t block = 0; block < c.in_blocks(); ++block)
    for (std::int64_t tile = 0; tile < plan.kept; tile += plan.blocking.tile_rows)
      transform_input_tiles(c.shape, plan, c.in, block, tile, plan.blocking.tile_rows,
                            inputs + tile * plan.blocking.lanes);
#pragma omp parallel for schedule(static)
  for (int thread = 0; thread < threads; ++thread)
    for (std::int64_t panel = thread * c.panels() / threads; panel < (thread + 1) * c.panels() / threads;
         ++panel)
      compute_panel(c, inputs, panel, weights + thread * kWinogradPoints * plan.weight_plane,
                    products + thread * kWinogradPoints * plan.out_plane);
}

// All panels of some tiles, the first of which is `index` of all.
template <typename Element>
void compute_tiles(const Convolution<Element>& c, const float* weights, std::int64_t index, float* inputs,
                   float* products) {
  const WinogradPlan& plan = c.plan;
  for (std::int64_t block = 0; block < c.in_blocks(); ++block)
    transform_input_tiles(c.shape, plan, c.in, block, index, plan.at_once, inputs);
  const std::int64_t lanes = plan.blocking.lanes, panel_channels = plan.blocking.panel();
  const std::int64_t panel_products = plan.at_once * panel_channels;
  for (std::int64_t first = 0; first < c.panels(); first += plan.panels_at_once) {
    const std::int64_t panels = std::min(plan.panels_at_once, c.panels() - first);
    for (std::int64_t point = 0; point < kWinogradPoints; ++point)
      for (std::int64_t tile = 0; tile < plan.at_once; tile += plan.blocking.tile_rows)
        for (std::int64_t panel = 0; panel < panels; ++panel)
          vectors_of(plan).multiply_tiles(
              inputs + point * plan.in_plane + tile * lanes, plan.kept * lanes, c.in_blocks(),
              weights + point * plan.weight_plane + (first + panel) * c.shape.in_channels * panel_channels,
              products + point * plan.out_plane + panel * panel_products + tile * panel_channels, false);
    for (std::int64_t panel = 0; panel < panels; ++panel)
      store_results(c.shape, plan, products + panel * panel_products, index, first + panel, c.out);
  }
}

template <typename Element>
void convolve_by_tiles(const Convolution<Element>& c, int threads, float* workspace) {
  const WinogradPlan& plan = c.plan;
  float* const weights = workspace;
  float* const inputs = weights + kWinogradPoints * plan.weight_plane;
  float* const products = inputs + threads * kWinogradPoints * plan.in_plane;
#pragma omp parallel for schedule(static)
  for (std::int64_t panel = 0; panel < c.panels(); ++panel)
    transform_panel(c.shape, plan, c.weight, c.is_turned, panel, 0, c.in_blocks(),
                    weights + panel * c.shape.in_channels * plan.blocking.panel());
  const std::int64_t parts = ceil_div(plan.tiles, plan.at_once);
#pragma omp parallel for schedule(static)
  for (int thread = 0; thread < threads; ++thread)
    for (std::int64_t part = thread * parts / threads; part < (thread + 1) * parts / threads; ++part)
      compute_tiles(c, weights, part * plan.at_once, inputs + thread * kWinogradPoints * plan.in_plane,
                    products + thread * kWinogradPoints * plan.out_plane);
}

template <typename Element>
void convolve(const ConvShape& shape, int lanes, int threads, const Element* in, const Element* weight,
              bool is_turned, Element* out, float* workspace) {
  const WinogradPlan plan = plan_winograd(shape, lanes, threads);
  const Convolution<Element> convolution{
      .shape = shape, .plan = plan, .in = in, .weight = weight, .is_turned = is_turned, .out = out};
  (plan.by_panel ? convolve_by_panels<Element> : convolve_by_tiles<Element>)(convolution, threads, workspace);
}

// Tiles first … of the gradients of results.
template <typename Element>
void transform_gradient_tiles(const ConvShape& s, const WinogradPlan& plan, const Element* d_out,
                              std::int64_t block, std::int64_t first, std::int64_t count, float* gradients) {
  const std::int64_t lanes = plan.blocking.lanes, panel_channels = plan.blocking.panel();
  float* const to = gradients + block / 2 * plan.kept * panel_channels + block % 2 * lanes;
  for (std::int64_t tile = 0; tile < count; ++tile) {
    const TilePlace at(plan, first + tile);
    vectors_of(plan).transform<Element>().gradients(
        {.block = at.block(d_out, s.out_channels, block, s.out_height * s.out_width),
         .top = at.top,
         .left = at.left,
         .height = s.out_height,
         .width = s.out_width},
        {.first = to + tile * panel_channels, .plane = plan.out_plane});
  }
}

}  // namespace

template <typename Element>
void winograd_forward(const ConvShape& shape, int lanes, int threads, const Element* in,
                      const Element* weight, Element* out, float* workspace) {
  convolve(shape, lanes, threads, in, weight, false, out, workspace);
}

template <typename Element>
void winograd_backward_data(const ConvShape& shape, int lanes, int threads, const Element* d_out,
                            const Element* weight, Element* d_in, float* workspace) {
  convolve(backward_data_shape(shape), lanes, threads, d_out, weight, true, d_in, workspace);
}

template <typename Element>
void winograd_backward_weights(const ConvShape& s, int lanes_of_vectors, const Element* in,
                               const Element* d_out, float* d_weight, float* workspace) {
  const WinogradPlan plan = plan_winograd_weights(s, lanes_of_vectors);
  const std::int64_t lanes = plan.blocking.lanes, panel_channels = plan.blocking.panel();
  const std::int64_t rows = plan.blocking.channel_rows, tiles_at_once = plan.blocking.tile_rows;
  const std::int64_t in_blocks = s.in_channels / lanes, out_blocks = s.out_channels / lanes;
  const std::int64_t panels = s.out_channels / panel_channels;
  float* const inputs = workspace;
  float* const gradients = inputs + kWinogradPoints * plan.in_plane;
  float* const sums = gradients + kWinogradPoints * plan.out_plane;
  for (std::int64_t first = 0; first < plan.tiles; first += plan.kept) {
    const std::int64_t count = std::min(plan.kept, plan.tiles - first);
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t block = 0; block < in_blocks + out_blocks; ++block)
      for (std::int64_t tile = 0; tile < count; tile += tiles_at_once) {
        const std::int64_t tiles = std::min(tiles_at_once, count - tile);
        if (block < in_blocks)
          transform_input_tiles(s, plan, in, block, first + tile, tiles, inputs + tile * lanes);
        else
          transform_gradient_tiles(s, plan, d_out, block - in_blocks, first + tile, tiles,
                                   gradients + tile * panel_channels);
      }
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t point = 0; point < kWinogradPoints; ++point)
      for (std::int64_t panel = 0; panel < panels; ++panel)
        for (std::int64_t channel = 0; channel < s.in_channels; channel += rows)
          vectors_of(plan).multiply_gradients(
              inputs + point * plan.in_plane + channel / lanes * plan.kept * lanes + channel % lanes,
              gradients + point * plan.out_plane + panel * plan.kept * panel_channels, count,
              sums + point * plan.weight_plane + (panel * s.in_channels + channel) * panel_channels,
              first > 0);
  }
#pragma omp parallel for collapse(2) schedule(static)
  for (std::int64_t out = 0; out < out_blocks; ++out)
    for (std::int64_t in_block = 0; in_block < in_blocks; ++in_block)
      for (std::int64_t channel = 0; channel < lanes; ++channel)
        vectors_of(plan).transform_weight_sums(
            {.first = sums + (out / 2 * s.in_channels + in_block * lanes + channel) * panel_channels +
                      out % 2 * lanes,
             .plane = plan.weight_plane},
            {.first = d_weight + (out * in_blocks + in_block) * kTaps * lanes * lanes + channel * lanes,
             .plane = lanes * lanes,
             .columns = kKernelSide});
}

template void winograd_forward(const ConvShape&, int, int, const float*, const float*, float*, float*);
template void winograd_forward(const ConvShape&, int, int, const Bf16*, const Bf16*, Bf16*, float*);
template void winograd_backward_data(const ConvShape&, int, int, const float*, const float*, float*, float*);
template void winograd_backward_data(const ConvShape&, int, int, const Bf16*, const Bf16*, Bf16*, float*);
template void winograd_backward_weights(const ConvShape&, int, const float*, const float*, float*, float*);
template void winograd_backward_weights(const ConvShape&, int, const Bf16*, const Bf16*, float*, float*);

}  // namespace plumb::cpu
