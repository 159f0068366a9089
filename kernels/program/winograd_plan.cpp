#include "kernels/program/winograd_plan.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "base/text.h"

namespace plumb {
namespace {

constexpr std::int64_t kTilesAtOnce = 64;      // plain ones; the products of a panel fit a core's cache
constexpr std::int64_t kFewTiles = 128;        // of any kind
constexpr std::int64_t kChannelsAtOnce = 128;  // the weights of a panel fit a core's cache
// Weights' gradients: tiles at a time, of all threads in near caches, or at least as many as make reading all
// sums cheap; of one thread in its own. Tiles of a slice; slices, and their sums.
constexpr std::int64_t kSharedFloats = 2 << 20, kSharedTiles = 128, kOwnTiles = 32;
constexpr std::int64_t kSliceTiles = 256, kMostSlices = 8, kSlicesFloats = 4 << 20;
// Planes start in different sets of the caches, whatever the number of channels.
constexpr std::int64_t kApart = 48;
constexpr std::int64_t kPanelsChannels = 64;  // multiplied in turn

std::int64_t whole_rows(std::int64_t tiles, const WinogradBlocking& blocking) {
  return ceil_div(tiles, blocking.tile_rows) * blocking.tile_rows;
}

WinogradKind kind_of(const ConvShape& shape, ConvPass pass) {
  if (shape.stride == 1) return WinogradKind::plain;
  return pass == ConvPass::backward_data ? WinogradKind::transposed : WinogradKind::strided;
}

// As many tiles as take the memory of so many plain ones.
std::int64_t tiles_like(const WinogradPlan& plan, std::int64_t plain_tiles) {
  return plain_tiles * kWinogradWeights / plan.points();
}

// The tiles of a pass; nothing is said yet of the order in which they are computed.
WinogradPlan tiles_of(const ConvShape& shape, ConvPass pass, int lanes) {
  const WinogradKind kind = kind_of(shape, pass);
  const WinogradTiling tiling = winograd_tiling(kind);
  // With stride 1 the gradients of inputs are the results, which there may be more of, or fewer, than
  // d_out's.
  const bool of_inputs = pass == ConvPass::backward_data && kind == WinogradKind::plain;
  WinogradPlan plan{.shape = shape,
                    .is_turned = pass == ConvPass::backward_data,
                    .kind = kind,
                    .tiling = tiling,
                    .blocking = winograd_blocking(lanes),
                    .in_stride = kind == WinogradKind::strided ? 2 : 1,
                    .out_stride = kind == WinogradKind::transposed ? 2 : 1,
                    .padding = kind == WinogradKind::transposed ? 0
                               : of_inputs                      ? shape.kernel - 1 - shape.padding
                                                                : shape.padding,
                    .down = winograd_axis(of_inputs ? shape.in_height : shape.out_height, tiling),
                    .across = winograd_axis(of_inputs ? shape.in_width : shape.out_width, tiling),
                    .group_images = shape.images,
                    .weight_plane = shape.in_channels * shape.out_channels + kApart};
  if (plan.is_turned) {
    std::swap(plan.shape.in_channels, plan.shape.out_channels);
    std::swap(plan.shape.in_height, plan.shape.out_height);
    std::swap(plan.shape.in_width, plan.shape.out_width);
  }
  // Short tiles save little of large images, and steps have to be of whole images.
  if (plan.image_tiles() > kTilesAtOnce) {
    for (WinogradAxis* axis : {&plan.down, &plan.across}) *axis = {.whole = axis->tiles()};
  }
  const WinogradAxis &down = plan.down, &across = plan.across;
  plan.forms = {
      {{.is_short_across = true, .rows = down.whole, .columns = across.shorts},
       {.rows = down.whole, .columns = across.whole},
       {.is_short_down = true, .rows = down.shorts, .columns = across.whole},
       {.is_short_down = true, .is_short_across = true, .rows = down.shorts, .columns = across.shorts}}};
  return plan;
}

// Steps of about `most` tiles, as many for each thread; of whole images where some tiles are short.
void set_step(WinogradPlan& plan, std::int64_t most, int threads) {
  const std::int64_t unit = plan.has_shorts() ? plan.image_tiles() : 1;
  const std::int64_t share = ceil_div(plan.tiles() / unit, threads);
  plan.step = ceil_div(share, ceil_div(share * unit, most)) * unit;
  plan.kept = whole_rows(plan.step, plan.blocking);
  if (plan.has_shorts())
    plan.group_images = plan.step / unit;
  else
    plan.step = plan.kept;
}

void plan_convolution(WinogradPlan& plan, int threads) {
  const ConvShape& shape = plan.shape;
  const int panel = plan.blocking.panel();
  plan.by_panel = plan.tiles() <= kFewTiles && shape.out_channels / panel % threads == 0;
  if (plan.by_panel) {
    set_step(plan, plan.tiles(), 1);
    plan.channels_at_once = std::min(kChannelsAtOnce, shape.in_channels);
    plan.panels_at_once = 1;
    plan.weight_plane = plan.channels_at_once * panel + kApart;
  } else {
    set_step(plan, tiles_like(plan, kTilesAtOnce), threads);
    plan.panels_at_once = std::min(kPanelsChannels, shape.out_channels) / panel;
  }
  plan.in_plane = plan.kept * shape.in_channels + kApart;
  plan.out_plane = plan.panels_at_once * plan.kept * panel + kApart;
  plan.floats = plan.by_panel ? plan.in_floats() + threads * (plan.weight_floats() + plan.out_floats())
                              : plan.weight_floats() + threads * (plan.in_floats() + plan.out_floats());
}

void plan_weights(WinogradPlan& plan, int threads) {
  const ConvShape& shape = plan.shape;
  if (!plan.has_shorts()) {
    const auto most = static_cast<std::uint64_t>(
        std::min(plan.tiles() / kSliceTiles, kSlicesFloats / plan.weight_floats()));
    plan.slices = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::bit_floor(most)), 1, kMostSlices);
  }
  plan.by_slice = plan.slices > 1 && plan.slices % threads == 0;
  const std::int64_t channels = shape.in_channels + shape.out_channels;
  const std::int64_t few = tiles_like(plan, kSharedTiles);
  std::int64_t most = std::max(few, kSharedFloats / (plan.points() * channels));
  // Sums of several points depend on the step, which then can't depend on the threads.
  if (plan.slices > 1 && plan.kind == WinogradKind::strided)
    most = few;
  else if (plan.by_slice)
    most = kOwnTiles;
  set_step(plan, most, 1);
  plan.in_plane = plan.kept * shape.in_channels + kApart;
  plan.out_plane = plan.kept * shape.out_channels + kApart;
  plan.floats = plan.slices * plan.weight_floats() +
                (plan.by_slice ? threads : 1) * (plan.in_floats() + plan.out_floats());
}

bool is_one_of(std::int64_t point, const std::array<std::int64_t, 2>& points) {
  return point == points[0] || point == points[1];
}

}  // namespace

std::int64_t WinogradPlan::products() const {
  const auto along = [&](const WinogradAxis& axis) {
    return tiling.points * axis.whole + tiling.short_points * axis.shorts;
  };
  return shape.images * along(down) * along(across);
}

WinogradPlan plan_winograd(const ConvShape& shape, ConvPass pass, int lanes, int threads) {
  WinogradPlan plan = tiles_of(shape, pass, lanes);
  (pass == ConvPass::backward_weights ? plan_weights : plan_convolution)(plan, threads);
  return plan;
}

WinogradTile winograd_tile_of_forms(const WinogradPlan& plan, std::int64_t index) {
  const std::int64_t group_tiles = plan.group_images * plan.image_tiles();
  const std::int64_t first_image = index / group_tiles * plan.group_images;
  const std::int64_t images = std::min(plan.group_images, plan.shape.images - first_image);
  const auto start_of = [&](std::int64_t tile, const WinogradAxis& axis, bool is_short) {
    return is_short ? axis.whole * kWinogradTile + tile * plan.tiling.short_results : tile * kWinogradTile;
  };
  std::int64_t rest = index % group_tiles;
  for (const WinogradForm& form : plan.forms) {
    if (rest >= images * form.tiles()) {
      rest -= images * form.tiles();
      continue;
    }
    return {.image = first_image + rest / form.tiles(),
            .top = start_of(rest / form.columns % form.rows, plan.down, form.is_short_down),
            .left = start_of(rest % form.columns, plan.across, form.is_short_across),
            .is_short_down = form.is_short_down,
            .is_short_across = form.is_short_across};
  }
  throw std::logic_error(fmt::format("a convolution has no tile {}", index));
}

WinogradRun winograd_run(const WinogradPlan& plan, std::int64_t count, std::int64_t point) {
  if (!plan.has_shorts()) return {0, count};
  const auto& whole_only = plan.tiling.of_whole_tiles_only;
  const bool whole_down = is_one_of(point / plan.tiling.points, whole_only);
  const bool whole_across = is_one_of(point % plan.tiling.points, whole_only);
  const std::int64_t images = count / plan.image_tiles();
  WinogradRun run{};
  std::int64_t begin = 0;
  for (const WinogradForm& form : plan.forms) {
    const std::int64_t end = begin + images * form.tiles();
    const bool takes = !(whole_down && form.is_short_down) && !(whole_across && form.is_short_across);
    if (takes && run.end == 0) run.begin = begin;
    if (takes) run.end = end;
    begin = end;
  }
  return run;
}

}  // namespace plumb
