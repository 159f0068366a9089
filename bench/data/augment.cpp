#include "bench/data/augment.h"

#include <cmath>

namespace plumb {
namespace {

constexpr int kTries = 10;
constexpr double kSmallestArea = 0.08, kNarrowest = 3.0 / 4, kWidest = 4.0 / 3;

double between(double low, double high, std::uint32_t bits) {
  return low + (high - low) * bits * 0x1p-32;
}

// Uniform in [0, count).
int below(int count, std::uint32_t bits) {
  return static_cast<int>((static_cast<std::uint64_t>(bits) * static_cast<std::uint64_t>(count)) >> 32);
}

int rounded(double number) {
  return static_cast<int>(std::nearbyint(number));
}  // ties to even, as Python's round

Crop middle_crop(ImageSize image) {
  const double ratio = static_cast<double>(image.width) / image.height;
  ImageSize size = image;
  if (ratio < kNarrowest) size.height = rounded(image.width / kNarrowest);
  if (ratio > kWidest) size.width = rounded(image.height * kWidest);
  return {{(image.width - size.width) / 2, (image.height - size.height) / 2, size}, false};
}

PhiloxBlock bits_of(PhiloxKey key, std::uint64_t sample, std::uint32_t number) {
  return philox4x32(
      key, {static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32), number, 0});
}

bool is_flipped(PhiloxKey key, std::uint64_t sample) {
  return (bits_of(key, sample, kTries)[0] & 1) != 0;
}

}  // namespace

Preprocessing preprocessing_of(const Model& model) {
  return model.margin_head ? Preprocessing::insightface : Preprocessing::imagenet;
}

Normalization normalisation_of(Preprocessing preprocessing) {
  if (preprocessing == Preprocessing::insightface) {
    constexpr float kFactor = 0.0078125F, kOffset = -127.5F * kFactor;
    return {{kFactor, kFactor, kFactor}, {kOffset, kOffset, kOffset}};
  }
  constexpr float kMean[] = {0.485F, 0.456F, 0.406F}, kDeviation[] = {0.229F, 0.224F, 0.225F};
  Normalization normalization{};
  for (std::size_t c = 0; c < 3; ++c) {
    normalization.factor[c] = 1 / (255 * kDeviation[c]);
    normalization.offset[c] = -kMean[c] / kDeviation[c];
  }
  return normalization;
}

Crop crop_for(Preprocessing preprocessing, ImageSize image, PhiloxKey key, std::uint64_t sample) {
  if (preprocessing == Preprocessing::insightface) return {{0, 0, image}, is_flipped(key, sample)};
  return random_crop(image, key, sample);
}

Crop random_crop(ImageSize image, PhiloxKey key, std::uint64_t sample) {
  const double area = static_cast<double>(image.width) * image.height;
  Crop crop = middle_crop(image);
  for (std::uint32_t attempt = 0; attempt < kTries; ++attempt) {
    const PhiloxBlock bits = bits_of(key, sample, attempt);
    const double wanted = area * between(kSmallestArea, 1, bits[0]);
    const double ratio = std::exp(between(std::log(kNarrowest), std::log(kWidest), bits[1]));
    const ImageSize size{rounded(std::sqrt(wanted * ratio)), rounded(std::sqrt(wanted / ratio))};
    if (size.width < 1 || size.height < 1 || size.width > image.width || size.height > image.height) continue;
    crop = {
        {below(image.width - size.width + 1, bits[2]), below(image.height - size.height + 1, bits[3]), size},
        false};
    break;
  }
  crop.flip = is_flipped(key, sample);
  return crop;
}

}  // namespace plumb
