// From a decoded photograph to what the network reads: random crop, flip, resize, normalise.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "bench/data/image_decoder.h"

namespace plumb {

// How a network wants its images.
//   imagenet     random_crop, ImageNet's mean .485 .456 .406 and deviation .229 .224 .225 of pixels in [0, 1]
//   insightface  aligned faces, cut already: the whole image, flipped with probability 1/2, (x - 127.5) / 128
//                (insightface 863a7ea9); an image of another size than the network's is resized as a whole,
//                its aspect ratio given up
enum class Preprocessing { imagenet, insightface };

// value = pixel * factor + offset, pixels from 0 to 255; red, green, blue.
struct Normalisation {
  std::array<float, 3> factor, offset;
};
Normalisation normalisation_of(Preprocessing preprocessing);

// A part of an image, in its pixels.
struct Crop {
  int left = 0, top = 0;
  ImageSize size;
  bool flip = false;  // left and right exchanged
};

// torchvision's RandomResizedCrop with its defaults: area 8 to 100 % of the image's, aspect ratio 3/4 to 4/3,
// ten tries, else the largest part in the middle inside these ratios; flipped with probability 1/2. A
// function of (key, sample) alone.
Crop random_crop(ImageSize image, PhiloxKey key, std::uint64_t sample);

// The part of an image that sample number `sample` is: a function of (key, sample) alone.
Crop crop_for(Preprocessing preprocessing, ImageSize image, PhiloxKey key, std::uint64_t sample);

// `crop` of an image as it lies in the image decoded at a smaller size.
struct Box {
  double left = 0, top = 0, width = 0, height = 0;
};
Box scaled(const Crop& crop, ImageSize full, ImageSize decoded);

// Resizes with a triangle filter, as wide as one pixel of the wider grid (so that shrinking averages:
// Pillow's BILINEAR, torchvision's antialias=True), and normalises. A box of out_size pixels on pixel borders
// keeps its pixels as they are. Keeps its buffers.
class Resizer {
 public:
  explicit Resizer(Preprocessing preprocessing) : normalisation_(normalisation_of(preprocessing)) {}

  // out: [3, out_size, out_size]. The filter sees only pixels that lie in the box, at least in part.
  void resize(const RgbxImage& image, const Box& box, bool flip, int out_size, std::span<float> out);

 private:
  // Each output pixel reads the input pixels first, first + 1, … with weights that sum to 1.
  struct Axis {
    std::vector<int> first, count;
    std::vector<float> weights;  // `stride` per output pixel
    std::size_t stride = 0;
    int lowest = 0, highest = 0;  // input pixels [lowest, highest) are read
    void plan(double start, double length, int pixels, int out_size);
  };
  Normalisation normalisation_;
  Axis x_, y_;
  std::vector<float> row_;  // one output row, not yet resized along x, 4 floats per pixel
};

}  // namespace plumb
