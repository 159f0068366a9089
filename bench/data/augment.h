// Which part of an image a sample is, and what its pixels become: random crop, flip, normalization.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "bench/data/image_decoder.h"
#include "kernels/program/instructions/batch.h"
#include "models/catalogue.h"

namespace plumb {

// How a network wants its images.
//   imagenet     random_crop, ImageNet's mean .485 .456 .406 and deviation .229 .224 .225 of pixels in [0, 1]
//   insightface  aligned faces, cut already: the whole image, flipped with probability 1/2, (x - 127.5) / 128
//                (insightface 863a7ea9); an image of another size than the network's is resized as a whole,
//                its aspect ratio given up
enum class Preprocessing { imagenet, insightface };

Preprocessing preprocessing_of(const Model& model);
Normalization normalisation_of(Preprocessing preprocessing);

struct Crop : ImagePart {
  bool flip = false;  // left and right exchanged
};

// torchvision's RandomResizedCrop with its defaults: area 8 to 100 % of the image's, aspect ratio 3/4 to 4/3,
// ten tries, else the largest part in the middle inside these ratios; flipped with probability 1/2. A
// function of (key, sample) alone.
Crop random_crop(ImageSize image, PhiloxKey key, std::uint64_t sample);

// The part of an image that sample number `sample` is: a function of (key, sample) alone.
Crop crop_for(Preprocessing preprocessing, ImageSize image, PhiloxKey key, std::uint64_t sample);

}  // namespace plumb
