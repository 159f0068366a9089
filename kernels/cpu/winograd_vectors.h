// What Winograd's F(4x4, 3x3) does with vectors, of one instruction set: a vector holds as many channels as
// the layouts' blocks, its lanes.
#pragma once

#include <cstdint>

namespace plumb::cpu {

// Vectors at (y, x): of a plane per point or kernel position, or …
template <typename Float>
struct WinogradPlanes {
  Float* first = nullptr;
  std::int64_t plane = 0;  // floats
  int columns = 6;
};

// … of a tile of an image's block of channels, [height][width][lanes]; 0 outside of the image.
template <typename Float>
struct WinogradPixels {
  Float* block = nullptr;
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

struct WinogradVectors {
  // Transforms of one tile. To 36 points: 6x6 inputs, 4x4 gradients of results, 3x3 weights. From 36 points:
  // products to 4x4 results, sums to the gradient of 3x3 weights.
  void (*transform_inputs)(const WinogradPixels<const float>& from, const WinogradPlanes<float>& to);
  void (*transform_gradients)(const WinogradPixels<const float>& from, const WinogradPlanes<float>& to);
  void (*transform_weights)(const WinogradPlanes<const float>& from, const WinogradPlanes<float>& to);
  void (*transform_products)(const WinogradPlanes<const float>& from, const WinogradPixels<float>& to);
  void (*transform_weight_sums)(const WinogradPlanes<const float>& from, const WinogradPlanes<float>& to);
  void (*clear)(const WinogradPlanes<float>& planes);
  // products [rows of tiles][panel] (+)= inputs [blocks][rows][lanes], blocks `block_stride` apart, times
  // weights [blocks x lanes][panel].
  void (*multiply_tiles)(const float* inputs, std::int64_t block_stride, std::int64_t blocks,
                         const float* weights, float* products, bool adds);
  // d_weights [rows of channels][panel] (+)= inputs [tiles][rows, of lanes]^T times gradients [tiles][panel].
  void (*multiply_gradients)(const float* inputs, const float* gradients, std::int64_t tiles,
                             float* d_weights, bool adds);
};

extern const WinogradVectors kWinogradAvx2, kWinogradAvx512;

}  // namespace plumb::cpu
