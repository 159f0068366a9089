// How a pass over a 3x3 convolution goes through its tiles, by Winograd's algorithm on CPUs (Lavin, Gray:
// Fast Algorithms for Convolutional Neural Networks, CVPR 2016; with stride 2: Yepez, Ko: Stride 2 1-D, 2-D,
// and 3-D Winograd for Convolutional Neural Networks, IEEE TVLSI 2020). Pure.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/program/conv_shape.h"

namespace plumb {

enum class ConvPass { forward, backward_data, backward_weights };

// What a tile is; along one axis:
// - plain, all passes with stride 1: 4 results come from 6 inputs by F(4, 3), as products at 6 points;
// - strided, with stride 2: taps 0 and 2 meet every other one of 9 inputs, tap 1 those between. 4 results are
//   the sum of F(4, 2), 5 points, and of 4 products by tap 1;
// - transposed, its backward-data: 8 gradients of inputs come from 5 of results, half of them by F(4, 2), the
//   others as products by tap 1.
// Where fewer results are left at an axis' end the last tiles are short: 2 by F(2, 3), or 3 by F(3, 2).
enum class WinogradKind { plain, strided, transposed };

// Extents along one axis. Short tiles lack some of the points. A point multiplies by the transformed weight
// of its number, the last one of all if there are fewer of those: tap 1 is the same for all its points.
struct WinogradTiling {
  std::int64_t points = 0, short_points = 0, short_results = 0;
  std::array<std::int64_t, 2> of_whole_tiles_only{};
};
constexpr WinogradTiling winograd_tiling(WinogradKind kind) {
  return kind == WinogradKind::plain ? WinogradTiling{6, 4, 2, {3, 4}} : WinogradTiling{9, 7, 3, {3, 8}};
}
inline constexpr std::int64_t kWinogradTile = 4;                               // results of a whole tile
inline constexpr std::int64_t kWinogradWeightSide = 6, kWinogradWeights = 36;  // transformed ones

// An axis of an image's results.
struct WinogradAxis {
  std::int64_t whole = 0, shorts = 0;  // tiles
  constexpr std::int64_t tiles() const { return whole + shorts; }
};
constexpr WinogradAxis winograd_axis(std::int64_t results, const WinogradTiling& tiling) {
  const std::int64_t tiles = ceil_div(results, kWinogradTile);
  const std::int64_t shortened = (tiles * kWinogradTile - results) / (kWinogradTile - tiling.short_results);
  const std::int64_t shorts = shortened < tiles ? shortened : tiles;
  return {.whole = tiles - shorts, .shorts = shorts};
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

// Transformed tensors have a plane per point, weights one per transformed weight; sizes are in floats.
// by_panel: where tiles are few, transformed weights are the larger part. Threads then share out panels, and
// each makes what it needs of them, some input channels at a time; else they share out tiles.
// Tiles are numbered by groups of images, and within one by form, so that each point multiplies one run.
struct WinogradPlan {
  // Backward-data swaps input and output: it convolves d_out by turned weights.
  ConvShape shape;
  bool is_turned = false;
  WinogradKind kind = WinogradKind::plain;
  WinogradTiling tiling;
  WinogradBlocking blocking;
  // Pixels from one result of the tiles to the next, in what is read and what is written; and how many rows
  // and columns before its results a tile's inputs begin.
  std::int64_t in_stride = 1, out_stride = 1, padding = 0;
  WinogradAxis down, across;
  std::array<WinogradForm, 4> forms;  // short in x, whole, short in y, short in both
  std::int64_t group_images = 0;
  bool by_panel = false;
  // Backward-weights cuts the tiles into slices, each with its own sums, whatever the number of threads.
  // Where all threads get as many slices, one thread computes a slice.
  std::int64_t slices = 1;
  bool by_slice = false;
  std::int64_t step = 0, kept = 0;                             // tiles computed in turn, and room for them
  std::int64_t channels_at_once = 0, panels_at_once = 0;       // multiplied in turn
  std::int64_t in_plane = 0, weight_plane = 0, out_plane = 0;  // from one plane to the next
  std::int64_t floats = 0;                                     // of all threads

  bool has_shorts() const { return down.shorts + across.shorts > 0; }
  std::int64_t image_tiles() const { return down.tiles() * across.tiles(); }
  std::int64_t tiles() const { return shape.images * image_tiles(); }
  std::int64_t points() const { return tiling.points * tiling.points; }
  std::int64_t in_floats() const { return points() * in_plane; }  // of a step, transformed
  std::int64_t weight_floats() const { return kWinogradWeights * weight_plane; }
  std::int64_t out_floats() const { return points() * out_plane; }
  std::int64_t products() const;  // per pair of channels
};

// Backward-weights multiplies all channels of a step at once.
WinogradPlan plan_winograd(const ConvShape& shape, ConvPass pass, int lanes, int threads);

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

// body(point) for all points that multiply by one transformed weight.
template <typename Body>
void for_each_point(const WinogradPlan& plan, std::int64_t weight, const Body& body) {
  constexpr std::int64_t kLast = kWinogradWeightSide - 1;
  const std::int64_t side = plan.tiling.points, row = weight / kWinogradWeightSide,
                     column = weight % kWinogradWeightSide;
  for (std::int64_t y = row; y < (row == kLast ? side : row + 1); ++y)
    for (std::int64_t x = column; x < (column == kLast ? side : column + 1); ++x) body(y * side + x);
}

}  // namespace plumb
