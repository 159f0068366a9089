// Resizing of decoded images, in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/data/image_decoder.h"

namespace plumb {

// Along one axis. Each output pixel reads the input pixels first, first + 1, … with weights that sum to 2^16,
// or to 2^16 - 1: they have 16 bits.
struct ResizeAxis {
  std::vector<int> first, count;
  std::vector<std::uint16_t> weights;  // `stride` per output pixel
  std::size_t stride = 0;
  int lowest = 0, highest = 0;  // input pixels [lowest, highest) are read
};

// Resizes with a triangle filter, as wide as one pixel of the wider grid (Pillow's BILINEAR, torchvision's
// antialias=True). Sums have 16 bits: within one gray level of the filter in real numbers. Keeps its buffers.
class Resizer {
 public:
  // out: [out_size, out_size, 3]. The filter sees only pixels that lie in the box, at least in part. `flip`
  // exchanges left and right.
  void resize(const RgbxImage& image, const Box& box, bool flip, int out_size, std::span<std::uint8_t> out);

 private:
  void resize_rows(const RgbxImage& image, std::size_t y, std::size_t rows, std::size_t out_size,
                   std::uint8_t* out);

  ResizeAxis x_, y_;
  std::vector<std::uint16_t> rows_;   // resized along y: [rows of a strip, pixels, 4], 2^8 per gray level
  std::vector<std::uint16_t> strip_;  // the same as [pixels, rows of a strip, 4]
};

}  // namespace plumb
