// How an image becomes a square of another size: weights for every output pixel, and the sums of 16 bits that
// CPU (bench/data/resizer.h) and GPU (kernels/cuda/resize.cu) compute alike, to the bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumb {

// Along one axis. Each output pixel reads the input pixels first, first + 1, … with weights that sum to 2^16,
// or to 2^16 - 1: they have 16 bits.
struct ResizeAxis {
  std::vector<int> first, count;
  std::vector<std::uint16_t> weights;  // `stride` per output pixel
  std::size_t stride = 0;
  int lowest = 0, highest = 0;  // input pixels [lowest, highest) are read
};

struct ResizePlan {
  ResizeAxis x, y;
  int out_size = 0;
};

// Rows of the output whose sums along x are rounded alike: by the weights of the first of them.
inline constexpr int kResizeStripRows = 8;

// Along y first: of pixels, in 2^8 per grey level. Then along x: of those.
constexpr std::uint16_t scaled_by(std::uint16_t value, std::uint16_t weight) {
  return static_cast<std::uint16_t>((std::uint32_t{value} * weight) >> 16);
}
constexpr std::uint16_t blended(std::uint16_t sum, std::uint16_t value, std::uint16_t weight) {
  return static_cast<std::uint16_t>(sum + scaled_by(value, weight));
}

// Where a sum along x starts: half a grey level, and what products lost, half of 1 / 2^8 grey level each;
// more than 127 can't be added to white.
constexpr std::uint16_t resize_rounding(int x_count, int y_count) {
  const int lost = (x_count + y_count) / 2;
  return static_cast<std::uint16_t>(128 + (lost < 127 ? lost : 127));
}

}  // namespace plumb
