// What Winograd's F(4x4, 3x3) does with vectors, of one instruction set: a vector holds as many channels as
// the layouts' blocks, its lanes.
#pragma once

#include <cstdint>

#include "kernels/cpu/element_types.h"
#include "kernels/winograd.h"

namespace plumb::cpu {

// Vectors at (y, x): of a plane per point or kernel position, or …
template <typename Element>
struct WinogradPlanes {
  Element* first = nullptr;
  std::int64_t plane = 0;  // elements
  int columns = 6;
};

// … of a tile of an image's block of channels, [height][width][lanes]; 0 outside of the image. Inputs begin
// `padding` before the tile's results.
template <typename Element>
struct WinogradPixels {
  Element* block = nullptr;
  const WinogradTile& tile;
  std::int64_t padding = 0, height = 0, width = 0;
};

// Transforms of one tile of tensors that are stored as Element, float or Bf16. To 36 points: 6x6 inputs, 4x4
// gradients of results, 3x3 weights. From 36 points: products to 4x4 results. Where the tile is short: from
// or to 4 points along that axis, 4 inputs and 2 results.
template <typename Element>
struct WinogradTransforms {
  void (*inputs)(const WinogradPixels<const Element>& from, const WinogradPlanes<float>& to);
  void (*gradients)(const WinogradPixels<const Element>& from, const WinogradPlanes<float>& to);
  void (*weights)(const WinogradPlanes<const Element>& from, const WinogradPlanes<float>& to);
  void (*products)(const WinogradPlanes<const float>& from, const WinogradPixels<Element>& to);
};

struct WinogradVectors {
  WinogradTransforms<float> of_floats;
  WinogradTransforms<Bf16> of_halves;
  template <typename Element>
  const WinogradTransforms<Element>& transform() const;
  // Turns the sums at 36 points into the gradient of 3x3 weights.
  void (*transform_weight_sums)(const WinogradPlanes<const float>& from, const WinogradPlanes<float>& to);
  void (*clear)(const WinogradPlanes<float>& planes);
  // products [rows of tiles][panel] (+)= inputs [blocks][rows][lanes], blocks `block_stride` apart, times
  // weights [blocks x lanes][panel]; all rows of the blocking, or half of them.
  void (*multiply_tiles)(const float* inputs, std::int64_t block_stride, std::int64_t blocks,
                         const float* weights, float* products, bool adds, bool only_half);
  // d_weights [rows of channels][panel] (+)= inputs [tiles][rows, of lanes]^T times gradients [tiles][panel].
  void (*multiply_gradients)(const float* inputs, const float* gradients, std::int64_t tiles,
                             float* d_weights, bool adds);
};

template <>
inline const WinogradTransforms<float>& WinogradVectors::transform() const {
  return of_floats;
}
template <>
inline const WinogradTransforms<Bf16>& WinogradVectors::transform() const {
  return of_halves;
}

extern const WinogradVectors kWinogradAvx2, kWinogradAvx512;

}  // namespace plumb::cpu
