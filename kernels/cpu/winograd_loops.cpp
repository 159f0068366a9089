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

// Block `index` of a tile's image, of `channels` channels in all.
template <typename Element>
Element* block_of(const WinogradTile& tile, Element* images, std::int64_t lanes, std::int64_t channels,
                  std::int64_t index, std::int64_t pixels) {
  return images + (tile.image * channels / lanes + index) * pixels * lanes;
}

// A step's tiles, as numbers among all tiles.
struct StepTiles {
  std::int64_t first = 0, count = 0;
};

// Transforms tiles begin … end - 1 of a step for one block of channels; zeros behind the step's last tile.
template <typename Element>
void transform_input_tiles(const ConvShape& s, const WinogradPlan& plan, const Element* in,
                           std::int64_t block, const StepTiles& step, std::int64_t begin, std::int64_t end,
                           float* inputs) {
  const WinogradVectors& vectors = vectors_of(plan);
  const std::int64_t lanes = plan.blocking.lanes;
  for (std::int64_t index = begin; index < end; ++index) {
    const WinogradPlanes<float> to{.first = inputs + (block * plan.kept + index) * lanes,
                                   .plane = plan.in_plane};
    if (index >= step.count) {
      vectors.clear(to);
      continue;
    }
    const WinogradTile tile = winograd_tile(plan, step.first + index);
    vectors.transform<Element>().inputs(
        {.block = block_of(tile, in, lanes, s.in_channels, block, s.in_height * s.in_width),
         .tile = tile,
         .padding = s.padding,
         .height = s.in_height,
         .width = s.in_width},
        to);
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

// The results of all channels of a panel.
template <typename Element>
void store_results(const ConvShape& s, const WinogradPlan& plan, const float* products, const StepTiles& step,
                   std::int64_t panel, Element* out) {
  const std::int64_t lanes = plan.blocking.lanes;
  for (std::int64_t half = 0; half < 2; ++half)
    for (std::int64_t index = 0; index < step.count; ++index) {
      const WinogradTile tile = winograd_tile(plan, step.first + index);
      vectors_of(plan).transform<Element>().products(
          {.first = products + index * plan.blocking.panel() + half * lanes, .plane = plan.out_plane},
          {.block = block_of(tile, out, lanes, s.out_channels, 2 * panel + half, s.out_height * s.out_width),
           .tile = tile,
           .height = s.out_height,
           .width = s.out_width});
    }
}

// Products of a step's tiles at one point; whole and half rows of tiles at a time.
void multiply_point(const WinogradPlan& plan, std::int64_t point, const StepTiles& step, const float* inputs,
                    std::int64_t blocks, const float* weights, float* products, bool adds) {
  const std::int64_t lanes = plan.blocking.lanes, rows = plan.blocking.tile_rows, half = rows / 2;
  const WinogradRun run = winograd_run(plan, step.count, point);
  const std::int64_t end = ceil_div(run.end, half) * half;
  for (std::int64_t tile = run.begin / half * half; tile < end; tile += rows)
    vectors_of(plan).multiply_tiles(inputs + tile * lanes, plan.kept * lanes, blocks, weights,
                                    products + tile * plan.blocking.panel(), adds, end - tile < rows);
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
  const StepTiles all{0, plan.tiles()};
  const std::int64_t lanes = plan.blocking.lanes, most = plan.channels_at_once / lanes;
  for (std::int64_t block = 0; block < c.in_blocks(); block += most) {
    const std::int64_t blocks = std::min(most, c.in_blocks() - block);
    transform_panel(c.shape, plan, c.weight, c.is_turned, panel, block, blocks, weights);
    for (std::int64_t point = 0; point < kWinogradPoints; ++point)
      multiply_point(plan, point, all, inputs + point * plan.in_plane + block * plan.kept * lanes, blocks,
                     weights + point * plan.weight_plane, products + point * plan.out_plane, block > 0);
  }
  store_results(c.shape, plan, products, all, panel, c.out);
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
      transform_input_tiles(c.shape, plan, c.in, block, {0, plan.tiles()}, tile,
                            tile + plan.blocking.tile_rows, inputs);
#pragma omp parallel for schedule(static)
  for (int thread = 0; thread < threads; ++thread)
    for (std::int64_t panel = thread * c.panels() / threads; panel < (thread + 1) * c.panels() / threads;
         ++panel)
      compute_panel(c, inputs, panel, weights + thread * kWinogradPoints * plan.weight_plane,
                    products + thread * kWinogradPoints * plan.out_plane);
}

// All panels of a step's tiles.
template <typename Element>
void compute_tiles(const Convolution<Element>& c, const float* weights, const StepTiles& step, float* inputs,
                   float* products) {
  const WinogradPlan& plan = c.plan;
  for (std::int64_t block = 0; block < c.in_blocks(); ++block)
    transform_input_tiles(c.shape, plan, c.in, block, step, 0, plan.kept, inputs);
  const std::int64_t panel_channels = plan.blocking.panel(), panel_products = plan.kept * panel_channels;
  for (std::int64_t first = 0; first < c.panels(); first += plan.panels_at_once) {
    const std::int64_t panels = std::min(plan.panels_at_once, c.panels() - first);
    for (std::int64_t point = 0; point < kWinogradPoints; ++point)
      for (std::int64_t panel = 0; panel < panels; ++panel)
        multiply_point(
            plan, point, step, inputs + point * plan.in_plane, c.in_blocks(),
            weights + point * plan.weight_plane + (first + panel) * c.shape.in_channels * panel_channels,
            products + point * plan.out_plane + panel * panel_products, false);
    for (std::int64_t panel = 0; panel < panels; ++panel)
      store_results(c.shape, plan, products + panel * panel_products, step, first + panel, c.out);
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
  const std::int64_t steps = ceil_div(plan.tiles(), plan.step);
#pragma omp parallel for schedule(static)
  for (int thread = 0; thread < threads; ++thread)
    for (std::int64_t step = thread * steps / threads; step < (thread + 1) * steps / threads; ++step)
      compute_tiles(c, weights, {step * plan.step, std::min(plan.step, plan.tiles() - step * plan.step)},
                    inputs + thread * kWinogradPoints * plan.in_plane,
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

// Does the same to the gradients of results, which need no zeros.
template <typename Element>
void transform_gradient_tiles(const ConvShape& s, const WinogradPlan& plan, const Element* d_out,
                              std::int64_t block, const StepTiles& step, std::int64_t begin, std::int64_t end,
                              float* gradients) {
  const std::int64_t lanes = plan.blocking.lanes, panel_channels = plan.blocking.panel();
  float* const to = gradients + block / 2 * plan.kept * panel_channels + block % 2 * lanes;
  for (std::int64_t index = begin; index < end; ++index) {
    const WinogradTile tile = winograd_tile(plan, step.first + index);
    vectors_of(plan).transform<Element>().gradients(
        {.block = block_of(tile, d_out, lanes, s.out_channels, block, s.out_height * s.out_width),
         .tile = tile,
         .height = s.out_height,
         .width = s.out_width},
        {.first = to + index * panel_channels, .plane = plan.out_plane});
  }
}

// By all threads, or by the one that calls.
template <typename Body>
void for_each_of(std::int64_t count, bool by_all, const Body& body) {
#pragma omp parallel for schedule(static) if (by_all)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

// The operands of backward-weights, and a slice's share of the workspace.
template <typename Element>
struct WeightSums {
  const ConvShape& shape;
  const WinogradPlan& plan;
  const Element *in = nullptr, *d_out = nullptr;
  float *inputs = nullptr, *gradients = nullptr;  // transformed
  float* sums = nullptr;
};

template <typename Element>
void add_step(const WeightSums<Element>& w, const StepTiles& step, bool is_first) {
  const ConvShape& s = w.shape;
  const WinogradPlan& plan = w.plan;
  const auto [lanes, tile_rows, channel_rows] = plan.blocking;
  const std::int64_t in_blocks = s.in_channels / lanes, out_blocks = s.out_channels / lanes;
  const std::int64_t panel_channels = plan.blocking.panel(), panels = s.out_channels / panel_channels;
  const std::int64_t parts = ceil_div(step.count, tile_rows);
  for_each_of((in_blocks + out_blocks) * parts, !plan.by_slice, [&](std::int64_t i) {
    const std::int64_t block = i / parts, begin = i % parts * tile_rows;
    const std::int64_t end = std::min(begin + tile_rows, step.count);
    if (block < in_blocks)
      transform_input_tiles(s, plan, w.in, block, step, begin, end, w.inputs);
    else
      transform_gradient_tiles(s, plan, w.d_out, block - in_blocks, step, begin, end, w.gradients);
  });
  for_each_of(kWinogradPoints * panels, !plan.by_slice, [&](std::int64_t i) {
    // In an order that gives each thread points of every row and column, whose runs differ in length.
    const std::int64_t point = 7 * (i / panels) % kWinogradPoints, panel = i % panels;
    const WinogradRun run = winograd_run(plan, step.count, point);
    for (std::int64_t channel = 0; channel < s.in_channels; channel += channel_rows)
      vectors_of(plan).multiply_gradients(
          w.inputs + point * plan.in_plane + (channel / lanes * plan.kept + run.begin) * lanes +
              channel % lanes,
          w.gradients + point * plan.out_plane + (panel * plan.kept + run.begin) * panel_channels,
          run.end - run.begin,
          w.sums + point * plan.weight_plane + (panel * s.in_channels + channel) * panel_channels, !is_first);
  });
}

template <typename Element>
void add_slice(const WeightSums<Element>& w, std::int64_t slice) {
  const std::int64_t tiles = w.plan.tiles(), slices = w.plan.slices;
  const std::int64_t begin = slice * tiles / slices, end = (slice + 1) * tiles / slices;
  for (std::int64_t first = begin; first < end; first += w.plan.step)
    add_step(w, {first, std::min(w.plan.step, end - first)}, first == begin);
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
void winograd_backward_weights(const ConvShape& s, int lanes_of_vectors, int threads, const Element* in,
                               const Element* d_out, float* d_weight, float* workspace) {
  const WinogradPlan plan = plan_winograd_weights(s, lanes_of_vectors, threads);
  const std::int64_t slice_sums = kWinogradPoints * plan.weight_plane;
  const std::int64_t slice_inputs = kWinogradPoints * plan.in_plane;
  float* const sums = workspace;
  float* const tiles = sums + plan.slices * slice_sums;
  const auto add = [&](std::int64_t slice, std::int64_t thread) {
    float* const own = tiles + thread * (slice_inputs + kWinogradPoints * plan.out_plane);
    add_slice(WeightSums<Element>{.shape = s,
                                  .plan = plan,
                                  .in = in,
                                  .d_out = d_out,
                                  .inputs = own,
                                  .gradients = own + slice_inputs,
                                  .sums = sums + slice * slice_sums},
              slice);
  };
  if (plan.by_slice) {
    for_each_of(threads, true, [&](std::int64_t thread) {
      for (std::int64_t slice = thread; slice < plan.slices; slice += threads) add(slice, thread);
    });
  } else {
    for (std::int64_t slice = 0; slice < plan.slices; ++slice) add(slice, 0);
  }
  for_each_of(kWinogradPoints, plan.slices > 1, [&](std::int64_t point) {
    float* const total = sums + point * plan.weight_plane;
    for (std::int64_t slice = 1; slice < plan.slices; ++slice)
#pragma omp simd
      for (std::int64_t i = 0; i < plan.weight_plane; ++i) total[i] += total[slice * slice_sums + i];
  });
  const std::int64_t lanes = plan.blocking.lanes, panel_channels = plan.blocking.panel();
  const std::int64_t in_blocks = s.in_channels / lanes, out_blocks = s.out_channels / lanes;
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
template void winograd_backward_weights(const ConvShape&, int, int, const float*, const float*, float*,
                                        float*);
template void winograd_backward_weights(const ConvShape&, int, int, const Bf16*, const Bf16*, float*, float*);

}  // namespace plumb::cpu
