// Winograd's F(4x4, 3x3) (Lavin, Gray: Fast Algorithms for Convolutional Neural Networks, CVPR 2016) on CPUs,
// whose products are fp32 in every precision: which convolutions it can compute, how a pass goes through
// them, what it takes, and where that is less than directly. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/conv_shape.h"
#include "kernels/program.h"
#include "kernels/targets.h"
#include "models/graph.h"

namespace plumb {

// Instruction::engine of convolutions that can run either way.
inline constexpr std::string_view kWinograd = "winograd", kDirect = "direct";

enum class ConvPass { forward, backward_data, backward_weights };

// What a pass takes by Winograd's algorithm.
struct WinogradPass {
  double macs = 0;  // per pair of channels 36 for each tile of 4x4 results
  std::size_t workspace_bytes = 0;
  double relative_time = 0;  // expected, over the direct pass's
};

// A tile of 4x4 results comes from 6x6 inputs, as 36 products per pair of channels, one for each point, 6
// along either axis. Where 1 or 2 results are left at an axis' end their tile is short there: 2 results by
// F(2, 3), which needs 4 of those 6 points.
inline constexpr std::int64_t kWinogradTile = 4, kWinogradPoints = 36;
constexpr bool is_of_whole_tiles_only(std::int64_t point) {  // along one axis
  return point == 3 || point == 4;
}

// An axis of an image's results.
struct WinogradAxis {
  std::int64_t whole = 0, shorts = 0;  // tiles
  constexpr std::int64_t tiles() const { return whole + shorts; }
  constexpr std::int64_t points() const { return 6 * whole + 4 * shorts; }
};
constexpr WinogradAxis winograd_axis(std::int64_t results) {
  const std::int64_t left = results % kWinogradTile;
  return {.whole = results / kWinogradTile + (left > 2), .shorts = left == 1 || left == 2};
}

// What a CPU's vectors make of it: a block of the layouts has as many channels as a vector of floats, its
// lanes. A panel of output channels is computed together, and so many tiles, or, of weights' gradients, input
// channels, are multiplied together that their sums fit the registers.
struct WinogradBlocking {
  int lanes = 0, tile_rows = 0, channel_rows = 0;
  constexpr int panel() const { return 2 * lanes; }
};
// lanes: 16 (AVX-512, 32 registers) or 8 (AVX2, 16 registers).
constexpr WinogradBlocking winograd_blocking(int lanes) {
  return lanes == 16 ? WinogradBlocking{16, 8, 8} : WinogradBlocking{8, 6, 4};
}

// Tiles of one form, of an image.
struct WinogradForm {
  bool is_short_down = false, is_short_across = false;
  std::int64_t rows = 0, columns = 0;
  constexpr std::int64_t tiles() const { return rows * columns; }
};

// How a pass goes through its tiles. Transformed tensors have a plane per point; sizes are in floats.
// by_panel: where tiles are few, transformed weights are the larger part. Threads then share out panels, and
// each makes what it needs of them, some input channels at a time; else they share out tiles.
// Tiles are numbered by groups of images, and within one by form, so that each point multiplies one run.
struct WinogradPlan {
  WinogradBlocking blocking;
  WinogradAxis down, across;
  std::array<WinogradForm, 4> forms;  // short in x, whole, short in y, short in both
  std::int64_t images = 0, group_images = 0;
  bool by_panel = false;
  // Backward-weights cuts the tiles into slices, each with its own sums, whatever the number of threads.
  // Where all threads get as many slices, one thread computes a slice.
  std::int64_t slices = 1;
  bool by_slice = false;
  std::int64_t step = 0, kept = 0;                             // tiles computed in turn, and room for them
  std::int64_t channels_at_once = 0, panels_at_once = 0;       // multiplied in turn
  std::int64_t in_plane = 0, weight_plane = 0, out_plane = 0;  // from one point to the next
  std::int64_t floats = 0;                                     // of all threads

  bool has_shorts() const { return down.shorts + across.shorts > 0; }
  std::int64_t image_tiles() const { return down.tiles() * across.tiles(); }
  std::int64_t tiles() const { return images * image_tiles(); }
  std::int64_t products() const { return images * down.points() * across.points(); }  // per pair of channels
};

struct WinogradTile {
  std::int64_t image = 0, top = 0, left = 0;  // of its results
  bool is_short_down = false, is_short_across = false;
};
WinogradTile winograd_tile_of_forms(const WinogradPlan& plan, std::int64_t index);
inline WinogradTile winograd_tile(const WinogradPlan& plan, std::int64_t index) {
  if (plan.has_shorts()) return winograd_tile_of_forms(plan, index);
  const std::int64_t row = index / plan.across.whole, image = row / plan.down.whole;
  return {.image = image,
          .top = (row - image * plan.down.whole) * kWinogradTile,
          .left = (index - row * plan.across.whole) * kWinogradTile};
}

// The tiles that a point multiplies, among the `count` tiles of a step.
struct WinogradRun {
  std::int64_t begin = 0, end = 0;
};
WinogradRun winograd_run(const WinogradPlan& plan, std::int64_t count, std::int64_t point);

// The convolution of d_out by turned weights that backward-data is.
ConvShape backward_data_shape(const ConvShape& shape);
// The plan of a forward pass; for backward-data, of backward_data_shape().
WinogradPlan plan_winograd(const ConvShape& shape, int lanes, int threads);
// The plan of backward-weights: it multiplies all channels of a step at once.
WinogradPlan plan_winograd_weights(const ConvShape& shape, int lanes, int threads);

// 3x3, stride 1, padding of at most 1, one group, channels in multiples of 32.
bool can_be_winograd(const Graph& graph, const Conv& op);
// Empty if it can't be, or not on this CPU.
std::optional<WinogradPass> winograd_pass(const Graph& graph, const Conv& op, ConvPass pass,
                                          const DeviceLimits& limits, Precision precision);
// Expected to save a tenth of the time at least.
bool is_faster(const WinogradPass& pass);

// Report for users: the convolutions of a described or prepared Program that run by Winograd's algorithm.
// Empty where the device has no such choice.
std::string winograd_text(const Program& program);
// Names of those instructions.
std::vector<std::string> winograd_instructions(const Program& program);

}  // namespace plumb
