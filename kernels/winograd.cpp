#include "kernels/winograd.h"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <utility>

#include "base/text.h"

namespace plumb {
namespace {

// Time in units of a direct multiply-accumulate per pair of channels: transforming the weights, computing a
// tile, transforming it once per input and per output channel. Fitted to 180 passes with AVX-512 and 180 with
// AVX2 (docs/performance.md).
constexpr double kTile = 40, kTileTransform = 700;
double weight_transform(int lanes, Precision precision) {
  if (precision == Precision::bf16) return 1000;
  return lanes == 16 ? 600 : 870;
}
constexpr double kMostRelativeTime = 0.9;

constexpr std::int64_t kTilesAtOnce = 64;      // the products of a panel fit a core's cache
constexpr std::int64_t kFewTiles = 128;        // also these
constexpr std::int64_t kChannelsAtOnce = 128;  // with the weights of a panel
// Weights' gradients: tiles at a time, of all threads in near caches, or at least as many as make reading all
// sums cheap; of one thread in its own. Tiles of a slice; slices, and their sums.
constexpr std::int64_t kSharedFloats = 2 << 20, kSharedTiles = 128, kOwnTiles = 32;
constexpr std::int64_t kSliceTiles = 256, kMostSlices = 8, kSlicesFloats = 4 << 20;
// Planes start in different sets of the caches, whatever the number of channels.
constexpr std::int64_t kApart = 48;
constexpr std::int64_t kMostPanel = 32, kPanelsChannels = 64;  // of every blocking; multiplied in turn

std::int64_t whole_rows(std::int64_t tiles, const WinogradBlocking& blocking) {
  return ceil_div(tiles, blocking.tile_rows) * blocking.tile_rows;
}

WinogradPlan tiles_of(const ConvShape& shape, int lanes) {
  WinogradPlan plan{.blocking = winograd_blocking(lanes),
                    .down = winograd_axis(shape.out_height),
                    .across = winograd_axis(shape.out_width),
                    .images = shape.images,
                    .group_images = shape.images};
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
  plan.weight_plane = shape.in_channels * shape.out_channels + kApart;
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

}  // namespace

ConvShape backward_data_shape(const ConvShape& s) {
  return {.images = s.images,
          .in_channels = s.out_channels,
          .in_height = s.out_height,
          .in_width = s.out_width,
          .out_channels = s.in_channels,
          .out_height = s.in_height,
          .out_width = s.in_width,
          .kernel = s.kernel,
          .padding = s.kernel - 1 - s.padding};
}

WinogradPlan plan_winograd(const ConvShape& shape, int lanes, int threads) {
  WinogradPlan plan = tiles_of(shape, lanes);
  const int panel = plan.blocking.panel();
  plan.by_panel = plan.tiles() <= kFewTiles && shape.out_channels / panel % threads == 0;
  if (plan.by_panel) {
    set_step(plan, plan.tiles(), 1);
    plan.channels_at_once = std::min(kChannelsAtOnce, shape.in_channels);
    plan.panels_at_once = 1;
    plan.weight_plane = plan.channels_at_once * panel + kApart;
  } else {
    set_step(plan, kTilesAtOnce, threads);
    plan.panels_at_once = std::min(kPanelsChannels, shape.out_channels) / panel;
  }
  plan.in_plane = plan.kept * shape.in_channels + kApart;
  plan.out_plane = plan.panels_at_once * plan.kept * panel + kApart;
  plan.floats =
      kWinogradPoints * (plan.by_panel ? plan.in_plane + threads * (plan.weight_plane + plan.out_plane)
                                       : plan.weight_plane + threads * (plan.in_plane + plan.out_plane));
  return plan;
}

WinogradPlan plan_winograd_weights(const ConvShape& shape, int lanes, int threads) {
  WinogradPlan plan = tiles_of(shape, lanes);
  if (!plan.has_shorts()) {
    const auto most = static_cast<std::uint64_t>(
        std::min(plan.tiles() / kSliceTiles, kSlicesFloats / (kWinogradPoints * plan.weight_plane)));
    plan.slices = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::bit_floor(most)), 1, kMostSlices);
  }
  plan.by_slice = plan.slices > 1 && plan.slices % threads == 0;
  const std::int64_t channels = shape.in_channels + shape.out_channels;
  const std::int64_t shared = std::max(kSharedTiles, kSharedFloats / (kWinogradPoints * channels));
  set_step(plan, plan.by_slice ? kOwnTiles : shared, 1);
  plan.in_plane = plan.kept * shape.in_channels + kApart;
  plan.out_plane = plan.kept * shape.out_channels + kApart;
  plan.floats = kWinogradPoints * (plan.slices * plan.weight_plane +
                                   (plan.by_slice ? threads : 1) * (plan.in_plane + plan.out_plane));
  return plan;
}

WinogradTile winograd_tile_of_forms(const WinogradPlan& plan, std::int64_t index) {
  const std::int64_t group_tiles = plan.group_images * plan.image_tiles();
  const std::int64_t first_image = index / group_tiles * plan.group_images;
  const std::int64_t images = std::min(plan.group_images, plan.images - first_image);
  std::int64_t rest = index % group_tiles;
  for (const WinogradForm& form : plan.forms) {
    if (rest >= images * form.tiles()) {
      rest -= images * form.tiles();
      continue;
    }
    const std::int64_t row = rest / form.columns % form.rows, column = rest % form.columns;
    return {.image = first_image + rest / form.tiles(),
            .top = (form.is_short_down ? plan.down.whole : row) * kWinogradTile,
            .left = (form.is_short_across ? plan.across.whole : column) * kWinogradTile,
            .is_short_down = form.is_short_down,
            .is_short_across = form.is_short_across};
  }
  throw std::logic_error(fmt::format("a convolution has no tile {}", index));
}

WinogradRun winograd_run(const WinogradPlan& plan, std::int64_t count, std::int64_t point) {
  if (!plan.has_shorts()) return {0, count};
  const bool whole_down = is_of_whole_tiles_only(point / 6), whole_across = is_of_whole_tiles_only(point % 6);
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

bool can_be_winograd(const Graph& graph, const Conv& op) {
  return op.kernel == 3 && op.stride == 1 && op.padding <= 1 && op.groups == 1 &&
         graph.values[op.in].shape.c % kMostPanel == 0 && graph.values[op.out].shape.c % kMostPanel == 0;
}

std::optional<WinogradPass> winograd_pass(const Graph& graph, const Conv& op, ConvPass pass,
                                          const DeviceLimits& limits, Precision precision) {
  const int lanes = limits.winograd_lanes, threads = limits.threads;
  if (lanes == 0 || !can_be_winograd(graph, op)) return std::nullopt;
  const ConvShape shape = conv_shape(graph, op);
  const WinogradPlan plan = pass == ConvPass::backward_weights ? plan_winograd_weights(shape, lanes, threads)
                            : pass == ConvPass::backward_data
                                ? plan_winograd(backward_data_shape(shape), lanes, threads)
                                : plan_winograd(shape, lanes, threads);
  const auto products = static_cast<double>(plan.products());
  const double tiles = products / kWinogradPoints;  // a short one is so much of a whole one
  const auto in_channels = static_cast<double>(shape.in_channels);
  const auto out_channels = static_cast<double>(shape.out_channels);
  const double direct = static_cast<double>(9 * shape.images * shape.out_height * shape.out_width) *
                        limits.flops_per_second.at(Precision::fp32) / limits.flops_per_second.at(precision);
  return WinogradPass{
      .macs = products * in_channels * out_channels,
      .workspace_bytes = static_cast<std::size_t>(plan.floats) * sizeof(float),
      .relative_time = (weight_transform(lanes, precision) +
                        tiles * (kTile + kTileTransform * (1 / in_channels + 1 / out_channels))) /
                       direct};
}

bool is_faster(const WinogradPass& pass) {
  return pass.relative_time <= kMostRelativeTime;
}

std::vector<std::string> winograd_instructions(const Program& program) {
  std::vector<std::string> names;
  for (const Instruction& instruction : program.instructions)
    if (instruction.engine == kWinograd) names.push_back(instruction.name);
  return names;
}

std::string winograd_text(const Program& program) {
  std::vector<std::pair<std::string, std::string>> layers;  // name, passes
  std::size_t fast = 0, direct = 0;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.engine == kDirect) ++direct;
    if (instruction.engine != kWinograd) continue;
    ++fast;
    const std::size_t dot = instruction.name.rfind('.');
    const std::string layer = instruction.name.substr(0, dot);
    auto found = std::ranges::find(layers, layer, &std::pair<std::string, std::string>::first);
    if (found == layers.end()) found = layers.insert(layers.end(), {layer, ""});
    append_part(found->second, instruction.name.substr(dot + 1));
  }
  if (fast + direct == 0) return "";
  std::string text = fmt::format(
      "{} of {} passes over 3x3 convolutions with stride 1 by Winograd's F(4x4, 3x3)\n", fast, fast + direct);
  for (const auto& [layer, passes] : layers) text += fmt::format("  {}: {}\n", layer, passes);
  return text;
}

}  // namespace plumb
