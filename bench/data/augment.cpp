#include "bench/data/augment.h"

#include <algorithm>
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
  return {(image.width - size.width) / 2, (image.height - size.height) / 2, size, false};
}

PhiloxBlock bits_of(PhiloxKey key, std::uint64_t sample, std::uint32_t number) {
  return philox4x32(
      key, {static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32), number, 0});
}

bool is_flipped(PhiloxKey key, std::uint64_t sample) {
  return (bits_of(key, sample, kTries)[0] & 1) != 0;
}

// row[i] = sum over k of weights[k] * rows[k * row_bytes + i]: whole rows of bytes, so the compiler
// vectorises it.
void blend_rows(const std::uint8_t* rows, std::size_t row_bytes, const float* weights, int count,
                std::span<float> row) {
  const float weight0 = weights[0];
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = weight0 * static_cast<float>(rows[i]);
  for (int k = 1; k < count; ++k) {
    const std::uint8_t* bytes = rows + static_cast<std::size_t>(k) * row_bytes;
    const float weight = weights[k];
    for (std::size_t i = 0; i < row.size(); ++i) row[i] += weight * static_cast<float>(bytes[i]);
  }
}

// Four channels at once.
std::array<float, 4> blend_pixels(const float* pixels, const float* weights, int count) {
  std::array<float, 4> sum{};
  for (int k = 0; k < count; ++k)
    for (std::size_t c = 0; c < 4; ++c) sum[c] += weights[k] * pixels[static_cast<std::size_t>(k) * 4 + c];
  return sum;
}

}  // namespace

Normalisation normalisation_of(Preprocessing preprocessing) {
  if (preprocessing == Preprocessing::insightface) {
    constexpr float kFactor = 0.0078125F, kOffset = -127.5F * kFactor;
    return {{kFactor, kFactor, kFactor}, {kOffset, kOffset, kOffset}};
  }
  constexpr std::array<float, 3> kMean = {0.485F, 0.456F, 0.406F}, kDeviation = {0.229F, 0.224F, 0.225F};
  Normalisation normalisation{};
  for (std::size_t c = 0; c < 3; ++c) {
    normalisation.factor[c] = 1 / (255 * kDeviation[c]);
    normalisation.offset[c] = -kMean[c] / kDeviation[c];
  }
  return normalisation;
}

Crop crop_for(Preprocessing preprocessing, ImageSize image, PhiloxKey key, std::uint64_t sample) {
  if (preprocessing == Preprocessing::insightface) return {0, 0, image, is_flipped(key, sample)};
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
    crop = {below(image.width - size.width + 1, bits[2]), below(image.height - size.height + 1, bits[3]),
            size, false};
    break;
  }
  crop.flip = is_flipped(key, sample);
  return crop;
}

Box scaled(const Crop& crop, ImageSize full, ImageSize decoded) {
  const double x = static_cast<double>(decoded.width) / full.width;
  const double y = static_cast<double>(decoded.height) / full.height;
  return {crop.left * x, crop.top * y, crop.size.width * x, crop.size.height * y};
}

void Resizer::Axis::plan(double start, double length, int pixels, int out_size) {
  const double step = length / out_size;
  const double reach = std::max(step, 1.0);  // of the filter to either side, in input pixels
  lowest = std::clamp(static_cast<int>(std::floor(start)), 0, pixels - 1);
  highest = std::clamp(static_cast<int>(std::ceil(start + length)), lowest + 1, pixels);
  stride = static_cast<std::size_t>(std::ceil(reach)) * 2 + 1;
  first.resize(static_cast<std::size_t>(out_size));
  count.resize(static_cast<std::size_t>(out_size));
  weights.resize(static_cast<std::size_t>(out_size) * stride);
  for (int i = 0; i < out_size; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const double middle = start + (i + 0.5) * step;
    const int from = std::clamp(static_cast<int>(std::lround(middle - reach)), lowest, highest - 1);
    const int to = std::clamp(static_cast<int>(std::lround(middle + reach)), from + 1, highest);
    float* weight = weights.data() + index * stride;
    double sum = 0;
    for (int k = from; k < to; ++k) sum += std::max(0.0, 1 - std::abs(k + 0.5 - middle) / reach);
    for (int k = from; k < to; ++k)
      weight[k - from] = sum > 0
                             ? static_cast<float>(std::max(0.0, 1 - std::abs(k + 0.5 - middle) / reach) / sum)
                             : 1.0F / static_cast<float>(to - from);
    first[index] = from;
    count[index] = to - from;
  }
}

void Resizer::resize(const RgbxImage& image, const Box& box, bool flip, int out_size, std::span<float> out) {
  x_.plan(box.left, box.width, image.size.width, out_size);
  y_.plan(box.top, box.height, image.size.height, out_size);
  const std::size_t row_bytes = static_cast<std::size_t>(image.size.width) * 4;
  const std::uint8_t* corner = image.pixels.data() + static_cast<std::size_t>(x_.lowest) * 4;
  row_.resize(static_cast<std::size_t>(x_.highest - x_.lowest) * 4);
  const auto& [factor, offset] = normalisation_;
  const auto size = static_cast<std::size_t>(out_size);
  for (std::size_t y = 0; y < size; ++y) {
    blend_rows(corner + static_cast<std::size_t>(y_.first[y]) * row_bytes, row_bytes,
               y_.weights.data() + y * y_.stride, y_.count[y], row_);
    for (std::size_t x = 0; x < size; ++x) {
      const auto pixel = blend_pixels(row_.data() + static_cast<std::size_t>(x_.first[x] - x_.lowest) * 4,
                                      x_.weights.data() + x * x_.stride, x_.count[x]);
      float* target = out.data() + y * size + (flip ? size - 1 - x : x);
      for (std::size_t c = 0; c < 3; ++c) target[c * size * size] = pixel[c] * factor[c] + offset[c];
    }
  }
}

}  // namespace plumb
