// Transformed tensors have a plane for each point: inputs [block of channels][tile][lanes], products and
// gradients of results [panel][tile][panel]; weights one for each transformed weight: [panel of output
// channels][input channel][panel]. For each point a matrix product; its inner loop keeps some rows of a panel
// in registers.
#include "kernels/cpu/winograd/loops.h"

#include <algorithm>

#include "kernels/cpu/threads.h"
#include "kernels/cpu/winograd/vectors.h"

namespace plumb::cpu {
namespace {

constexpr std::int64_t kTaps = 9;
constexpr int kMostLanes = 16, kKernelSide = 3;

const WinogradVectors& vectors_of(const WinogradPlan& plan) {
  return plan.blocking.lanes == kMostLanes ? kWinogradAvx512 : kWinogradAvx2;
}

// The planes of a tile's points.
template <typename Value>
WinogradPlanes<Value> points_at(const WinogradPlan& plan, Value* first, std::int64_t plane) {
  return {.first = first, .plane = plane, .columns = static_cast<int>(plan.tiling.points)};
}

// A tile's pixels of a block of channels: `stride` from one result to the next, `padding` before the first.
template <typename Element>
WinogradPixels<Element> pixels_at(const WinogradPlan& plan, const WinogradTile& tile, Element* images,
                                  std::int64_t channels, std::int64_t height, std::int64_t width,
                                  std::int64_t block, std::int64_t stride = 1, std::int64_t padding = 0) {
  const std::int64_t lanes = plan.blocking.lanes;
  return {.block = images + (tile.image * channels / lanes + block) * height * width * lanes,
          .tile = tile,
          .top = tile.top * stride - padding,
          .left = tile.left * stride - padding,
          .height = height,
          .width = width};
}

// A step's tiles, as numbers among all tiles.
struct StepTiles {
  std::int64_t first = 0, count = 0;
};

// Transforms tiles begin … end - 1 of a step for one block of channels; zeros behind the step's last tile.
template <typename Element>
void transform_input_tiles(const WinogradPlan& plan, const Element* in, std::int64_t block,
                           const StepTiles& step, std::int64_t begin, std::int64_t end, float* inputs) {
  const ConvShape& s = plan.shape;
  for (std::int64_t index = begin; index < end; ++index) {
    const auto to =
        points_at(plan, inputs + (block * plan.kept + index) * plan.blocking.lanes, plan.in_plane);
    if (index >= step.count) {
      vectors_of(plan).clear(to);
      continue;
    }
    const WinogradTile tile = winograd_tile(plan, step.first + index);
    vectors_of(plan).transform<Element>(plan.kind).inputs(
        pixels_at(plan, tile, in, s.in_channels, s.in_height, s.in_width, block, plan.in_stride,
                  plan.padding),
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

// A panel of the weights, for some blocks of input channels.
template <typename Element>
void transform_panel(const WinogradPlan& plan, const Element* weight, std::int64_t panel,
                     std::int64_t first_block, std::int64_t blocks, float* weights) {
  const ConvShape& s = plan.shape;
  const std::int64_t lanes = plan.blocking.lanes, panel_channels = plan.blocking.panel();
  const std::int64_t in_blocks = s.in_channels / lanes, out_blocks = s.out_channels / lanes;
  for (std::int64_t block = 0; block < blocks; ++block)
    for (std::int64_t half = 0; half < 2; ++half) {
      const std::int64_t in = first_block + block, out = 2 * panel + half;
      alignas(64) Element turned[kTaps * kMostLanes * kMostLanes];
      const Element* from =
          weight + (plan.is_turned ? in * out_blocks + out : out * in_blocks + in) * kTaps * lanes * lanes;
      if (plan.is_turned) {
        turn(from, lanes, turned);
        from = turned;
      }
      for (std::int64_t channel = 0; channel < lanes; ++channel)
        vectors_of(plan).transform<Element>(plan.kind).weights(
            {.first = from + channel * lanes, .plane = lanes * lanes, .columns = kKernelSide},
            {.first = weights + (block * lanes + channel) * panel_channels + half * lanes,
             .plane = plan.weight_plane,
             .columns = kWinogradWeightSide});
    }
}

// The results of all channels of a panel.
template <typename Element>
void store_results(const WinogradPlan& plan, const float* products, const StepTiles& step, std::int64_t panel,
                   Element* out) {
  const ConvShape& s = plan.shape;
  for (std::int64_t half = 0; half < 2; ++half)
    for (std::int64_t index = 0; index < step.count; ++index) {
      const WinogradTile tile = winograd_tile(plan, step.first + index);
      vectors_of(plan).transform<Element>(plan.kind).products(
          points_at(plan, products + index * plan.blocking.panel() + half * plan.blocking.lanes,
                    plan.out_plane),
          pixels_at(plan, tile, out, s.out_channels, s.out_height, s.out_width, 2 * panel + half,
                    plan.out_stride));
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

// The operands of a forward or backward-data pass.
template <typename Element>
struct Convolution {
  const WinogradPlan& plan;
  const Element *in = nullptr, *weight = nullptr;
  Element* out = nullptr;
  std::int64_t in_blocks() const { return plan.shape.in_channels / plan.blocking.lanes; }
  std::int64_t panels() const { return plan.shape.out_channels / plan.blocking.panel(); }
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
    transform_panel(plan, c.weight, panel, block, blocks, weights);
    for (std::int64_t weight = 0; weight < kWinogradWeights; ++weight)
      for_each_point(plan, weight, [&](std::int64_t point) {
        multiply_point(plan, point, all, inputs + point * plan.in_plane + block * plan.kept * lanes, blocks,
                       weights + weight * plan.weight_plane, products + point * plan.out_plane, block > 0);
      });
  }
  store_results(plan, products, all, panel, c.out);
}

template <typename Element>
void convolve_by_panels(const Convolution<Element>& c, int threads, float* workspace) {
  const WinogradPlan& plan = c.plan;
  float* const inputs = workspace;
  float* const weights = inputs + plan.in_floats();
  float* const products = weights + threads * plan.weight_floats();
#pragma omp parallel for collapse(2) schedule(static)
  for (std::int64_t block = 0; block < c.in_blocks(); ++block)
    for (std::int64_t tile = 0; tile < plan.kept; tile += plan.blocking.tile_rows)
      transform_input_tiles(plan, c.in, block, {0, plan.tiles()}, tile, tile + plan.blocking.tile_rows,
                            inputs);
#pragma omp parallel for schedule(static)
  for (int thread = 0; thread < threads; ++thread)
    for (std::int64_t panel = thread * c.panels() / threads; panel < (thread + 1) * c.panels() / threads;
         ++panel)
      compute_panel(c, inputs, panel, weights + thread * plan.weight_floats(),
                    products + thread * plan.out_floats());
}

// All panels of a step's tiles.
template <typename Element>
void compute_tiles(const Convolution<Element>& c, const float* weights, const StepTiles& step, float* inputs,
                   float* products) {
  const WinogradPlan& plan = c.plan;
  for (std::int64_t block = 0; block < c.in_blocks(); ++block)
    transform_input_tiles(plan, c.in, block, step, 0, plan.kept, inputs);
  const std::int64_t panel_channels = plan.blocking.panel(), panel_products = plan.kept * panel_channels;
  for (std::int64_t first = 0; first < c.panels(); first += plan.panels_at_once) {
    const std::int64_t panels = std::min(plan.panels_at_once, c.panels() - first);
    for (std::int64_t weight = 0; weight < kWinogradWeights; ++weight)
      for_each_point(plan, weight, [&](std::int64_t point) {
        for (std::int64_t panel = 0; panel < panels; ++panel)
          multiply_point(plan, point, step, inputs + point * plan.in_plane, c.in_blocks(),
                         weights + weight * plan.weight_plane +
                             (first + panel) * plan.shape.in_channels * panel_channels,
                         products + point * plan.out_plane + panel * panel_products, false);
      });
    for (std::int64_t panel = 0; panel < panels; ++panel)
      store_results(plan, products + panel * panel_products, step, first + panel, c.out);
  }
}

template <typename Element>
void convolve_by_tiles(const Convolution<Element>& c, int threads, float* workspace) {
  const WinogradPlan& plan = c.plan;
  float* const weights = workspace;
  float* const inputs = weights + plan.weight_floats();
  float* const products = inputs + threads * plan.in_floats();
#pragma omp parallel for schedule(static)
  for (std::int64_t panel = 0; panel < c.panels(); ++panel)
    transform_panel(plan, c.weight, panel, 0, c.in_blocks(),
                    weights + panel * plan.shape.in_channels * plan.blocking.panel());
  const std::int64_t steps = ceil_div(plan.tiles(), plan.step);
#pragma omp parallel for schedule(static)
  for (int thread = 0; thread < threads; ++thread)
    for (std::int64_t step = thread * steps / threads; step < (thread + 1) * steps / threads; ++step)
      compute_tiles(c, weights, {step * plan.step, std::min(plan.step, plan.tiles() - step * plan.step)},
                    inputs + thread * plan.in_floats(), products + thread * plan.out_floats());
}

// As transform_input_tiles, of the gradients of results, which need no zeros.
template <typename Element>
void transform_gradient_tiles(const WinogradPlan& plan, const Element* d_out, std::int64_t block,
                              const StepTiles& step, std::int64_t begin, std::int64_t end, float* gradients) {
  const ConvShape& s = plan.shape;
  const std::int64_t lanes = plan.blocking.lanes, panel_channels = plan.blocking.panel();
  float* const to = gradients + block / 2 * plan.kept * panel_channels + block % 2 * lanes;
  for (std::int64_t index = begin; index < end; ++index) {
    const WinogradTile tile = winograd_tile(plan, step.first + index);
    vectors_of(plan).transform<Element>(plan.kind).gradients(
        pixels_at(plan, tile, d_out, s.out_channels, s.out_height, s.out_width, block),
        points_at(plan, to + index * panel_channels, plan.out_plane));
  }
}

// body(i) on up to `threads` threads: one contiguous run each or, with `at_once`, chunks of that many in
// turn.
template <typename Body>
void for_each_of(std::int64_t count, int threads, const Body& body, std::int64_t at_once = 0) {
  if (at_once == 0) at_once = std::max<std::int64_t>(1, ceil_div(count, threads));
#pragma omp parallel for schedule(static, at_once) if (threads > 1)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

// The operands of backward-weights, and a slice's share of the workspace.
template <typename Element>
struct WeightSums {
  const WinogradPlan& plan;
  int threads = 1;
  const Element *in = nullptr, *d_out = nullptr;
  float *inputs = nullptr, *gradients = nullptr;  // transformed
  float* sums = nullptr;
};

template <typename Element>
void add_step(const WeightSums<Element>& w, const StepTiles& step, bool is_first) {
  const WinogradPlan& plan = w.plan;
  const ConvShape& s = plan.shape;
  const auto [lanes, tile_rows, channel_rows] = plan.blocking;
  const std::int64_t in_blocks = s.in_channels / lanes, out_blocks = s.out_channels / lanes;
  const std::int64_t panel_channels = plan.blocking.panel(), panels = s.out_channels / panel_channels;
  const std::int64_t row_runs = ceil_div(step.count, tile_rows);
  for_each_of((in_blocks + out_blocks) * row_runs, w.threads, [&](std::int64_t i) {
    const std::int64_t block = i / row_runs, begin = i % row_runs * tile_rows;
    const std::int64_t end = std::min(begin + tile_rows, step.count);
    if (block < in_blocks)
      transform_input_tiles(plan, w.in, block, step, begin, end, w.inputs);
    else
      transform_gradient_tiles(plan, w.d_out, block - in_blocks, step, begin, end, w.gradients);
  });
  // Points' runs differ in length, strided weights in points: each thread gets plain weights of every row and
  // column, and all strided ones, for some panels and, where those are few, a part of the input channels.
  const bool is_plain = plan.kind == WinogradKind::plain;
  const std::int64_t channel_groups = s.in_channels / channel_rows;
  const std::int64_t parts = is_plain ? 1 : std::min(ceil_div(w.threads, panels), channel_groups);
  const auto multiply = [&](std::int64_t i) {
    const std::int64_t panel = i % panels, part = i / panels % parts;
    const std::int64_t weight = (is_plain ? 7 : 1) * (i / panels / parts) % kWinogradWeights;
    const std::int64_t first = part * channel_groups / parts, last = (part + 1) * channel_groups / parts;
    bool adds = !is_first;
    for_each_point(plan, weight, [&](std::int64_t point) {
      const WinogradRun run = winograd_run(plan, step.count, point);
      for (std::int64_t channel = first * channel_rows; channel < last * channel_rows;
           channel += channel_rows)
        vectors_of(plan).multiply_gradients(
            w.inputs + point * plan.in_plane + (channel / lanes * plan.kept + run.begin) * lanes +
                channel % lanes,
            w.gradients + point * plan.out_plane + (panel * plan.kept + run.begin) * panel_channels,
            run.end - run.begin,
            w.sums + weight * plan.weight_plane + (panel * s.in_channels + channel) * panel_channels, adds);
      adds = true;
    });
  };
  for_each_of(kWinogradWeights * panels * parts, w.threads, multiply, is_plain ? 0 : 1);
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
void winograd_convolve(const WinogradPlan& plan, int threads, const Element* in, const Element* weight,
                       Element* out, float* workspace) {
  const Convolution<Element> convolution{.plan = plan, .in = in, .weight = weight, .out = out};
  (plan.by_panel ? convolve_by_panels<Element> : convolve_by_tiles<Element>)(convolution, threads, workspace);
}

template <typename Element>
void winograd_backward_weights(const WinogradPlan& plan, int threads, const Element* in, const Element* d_out,
                               float* d_weight, float* workspace) {
  const std::int64_t slice_sums = plan.weight_floats(), slice_inputs = plan.in_floats();
  float* const sums = workspace;
  float* const tiles = sums + plan.slices * slice_sums;
  const auto add = [&](std::int64_t slice, std::int64_t thread) {
    float* const own = tiles + thread * (slice_inputs + plan.out_floats());
    add_slice(WeightSums<Element>{.plan = plan,
                                  .threads = plan.by_slice ? 1 : threads,
                                  .in = in,
                                  .d_out = d_out,
                                  .inputs = own,
                                  .gradients = own + slice_inputs,
                                  .sums = sums + slice * slice_sums},
              slice);
  };
  if (plan.by_slice) {
    for_each_of(threads, threads, [&](std::int64_t thread) {
      for (std::int64_t slice = thread; slice < plan.slices; slice += threads) add(slice, thread);
    });
  } else {
    for (std::int64_t slice = 0; slice < plan.slices; ++slice) add(slice, 0);
  }
  for_each_of(kWinogradWeights, plan.slices > 1 ? threads : 1, [&](std::int64_t weight) {
    float* const total = sums + weight * plan.weight_plane;
    for (std::int64_t slice = 1; slice < plan.slices; ++slice)
#pragma omp simd
      for (std::int64_t i = 0; i < plan.weight_plane; ++i) total[i] += total[slice * slice_sums + i];
  });
  const std::int64_t lanes = plan.blocking.lanes, panel_channels = plan.blocking.panel();
  const std::int64_t in_channels = plan.shape.in_channels;
  const std::int64_t in_blocks = in_channels / lanes, out_blocks = plan.shape.out_channels / lanes;
#pragma omp parallel for collapse(2) schedule(static)
  for (std::int64_t out = 0; out < out_blocks; ++out)
    for (std::int64_t in_block = 0; in_block < in_blocks; ++in_block)
      for (std::int64_t channel = 0; channel < lanes; ++channel)
        vectors_of(plan).weight_sums[static_cast<std::size_t>(plan.kind)](
            {.first = sums + (out / 2 * in_channels + in_block * lanes + channel) * panel_channels +
                      out % 2 * lanes,
             .plane = plan.weight_plane,
             .columns = kWinogradWeightSide},
            {.first = d_weight + (out * in_blocks + in_block) * kTaps * lanes * lanes + channel * lanes,
             .plane = lanes * lanes,
             .columns = kKernelSide});
}

template void winograd_convolve(const WinogradPlan&, int, const float*, const float*, float*, float*);
template void winograd_convolve(const WinogradPlan&, int, const Bf16*, const Bf16*, Bf16*, float*);
template void winograd_backward_weights(const WinogradPlan&, int, const float*, const float*, float*, float*);
template void winograd_backward_weights(const WinogradPlan&, int, const Bf16*, const Bf16*, float*, float*);

}  // namespace plumb::cpu
