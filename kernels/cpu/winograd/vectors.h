// What Winograd's algorithm does with vectors, of one instruction set: a vector holds as many channels as the
// layouts' blocks, its lanes.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "kernels/cpu/element_types.h"
#include "kernels/program/winograd_plan.h"

namespace plumb::cpu {

// Vectors at (y, x): of a plane per point, transformed weight or tap, or …
template <typename Element>
struct WinogradPlanes {
  Element* first = nullptr;
  std::int64_t plane = 0;  // elements
  int columns = 0;
};

// … of an image's block of channels, [height][width][lanes], from (top, left) on; 0 outside of the image.
template <typename Element>
struct WinogradPixels {
  Element* block = nullptr;
  const WinogradTile& tile;
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

// Transforms of one tile of tensors that are stored as Element, float or Bf16: of inputs or gradients of
// results to the points that its form has, 3x3 weights to 6x6, products at the points to results.
template <typename Element>
struct WinogradTransforms {
  void (*inputs)(const WinogradPixels<const Element>& from, const WinogradPlanes<float>& to);
  void (*gradients)(const WinogradPixels<const Element>& from,
                    const WinogradPlanes<float>& to);  // null for transposed
  void (*weights)(const WinogradPlanes<const Element>& from, const WinogradPlanes<float>& to);
  void (*products)(const WinogradPlanes<const float>& from, const WinogradPixels<Element>& to);
};

// Arrays are by WinogradKind.
template <typename Element>
using WinogradTransformsByKind = std::array<WinogradTransforms<Element>, 3>;
struct WinogradVectors {
  std::tuple<WinogradTransformsByKind<float>, WinogradTransformsByKind<Bf16>> transforms;
  template <typename Element>
  const WinogradTransforms<Element>& transform(WinogradKind kind) const {
    return std::get<WinogradTransformsByKind<Element>>(transforms)[static_cast<std::size_t>(kind)];
  }
  // Turns sums for 6x6 transformed weights into the gradient of 3x3 weights; of plain and strided.
  std::array<void (*)(const WinogradPlanes<const float>& from, const WinogradPlanes<float>& to), 2>
      weight_sums;
  void (*clear)(const WinogradPlanes<float>& planes);
  // products [rows of tiles][panel] (+)= inputs [blocks][rows][lanes], blocks `block_stride` apart, times
  // weights [blocks x lanes][panel]; all rows of the blocking, or half of them.
  void (*multiply_tiles)(const float* inputs, std::int64_t block_stride, std::int64_t blocks,
                         const float* weights, float* products, bool adds, bool only_half);
  // d_weights [rows of channels][panel] (+)= inputs [tiles][rows, of lanes]^T times gradients [tiles][panel].
  void (*multiply_gradients)(const float* inputs, const float* gradients, std::int64_t tiles,
                             float* d_weights, bool adds);
};

extern const WinogradVectors kWinogradAvx2, kWinogradAvx512;

}  // namespace plumb::cpu
