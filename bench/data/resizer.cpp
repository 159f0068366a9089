#include "bench/data/resizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace plumb {
namespace {

// Rows are resized along y one by one, then along x together: whole vectors of bytes or 16-bit numbers in
// both, which the compiler sees as such from 32 on.
constexpr std::size_t kStripRows = 8, kLanes = kStripRows * 4;

// Along y first: of pixels, in 2^8 per gray level. Then along x: of those.
std::uint16_t scaled_by(std::uint16_t value, std::uint16_t weight) {
  return static_cast<std::uint16_t>((std::uint32_t{value} * weight) >> 16);
}
std::uint16_t blended(std::uint16_t sum, std::uint16_t value, std::uint16_t weight) {
  return static_cast<std::uint16_t>(sum + scaled_by(value, weight));
}

// Where a sum along x starts: half a gray level, and what products lost, half of 1 / 2^8 gray level each;
// more than 127 can't be added to white.
std::uint16_t resize_rounding(int x_count, int y_count) {
  const int lost = (x_count + y_count) / 2;
  return static_cast<std::uint16_t>(128 + std::min(lost, 127));
}

// row[i] = sum over k of weights[k] * rows[k * row_bytes + i]
void blend_rows(const std::uint8_t* rows, std::size_t row_bytes, const std::uint16_t* weights, int count,
                std::span<std::uint16_t> row) {
  const auto added = [&](std::size_t i, const std::uint8_t* bytes, std::uint16_t weight) {
    return scaled_by(static_cast<std::uint16_t>(bytes[i] << 8), weight);
  };
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = added(i, rows, weights[0]);
  for (int k = 1; k < count; ++k) {
    rows += row_bytes;
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<std::uint16_t>(row[i] + added(i, rows, weights[k]));
  }
}

// [rows, pixels, 4] to [pixels, rows, 4]
void exchange(const std::uint16_t* rows, std::size_t pixels, std::uint16_t* strip) {
  for (std::size_t x = 0; x < pixels; ++x)
    for (std::size_t y = 0; y < kStripRows; ++y)
      std::memcpy(strip + (x * kStripRows + y) * 4, rows + (y * pixels + x) * 4, 4 * sizeof *rows);
}

// One output pixel of each row, in whole gray levels.
std::array<std::uint8_t, kLanes> blend_columns(const std::uint16_t* columns, const std::uint16_t* weights,
                                               int count, std::uint16_t rounding) {
  std::array<std::uint16_t, kLanes> sum;
  for (std::size_t i = 0; i < kLanes; ++i) sum[i] = rounding;
  for (int k = 0; k < count; ++k, columns += kLanes)
    for (std::size_t i = 0; i < kLanes; ++i) sum[i] = blended(sum[i], columns[i], weights[k]);
  std::array<std::uint8_t, kLanes> levels;
  for (std::size_t i = 0; i < kLanes; ++i) levels[i] = static_cast<std::uint8_t>(sum[i] >> 8);
  return levels;
}

void plan_pixel(ResizeAxis& axis, std::size_t index, double middle, double reach) {
  constexpr int kOne = 1 << 16;
  // Pixels whose middle is less than `reach` away, those of the box only.
  const int from =
      std::clamp(static_cast<int>(std::floor(middle - reach + 0.5)), axis.lowest, axis.highest - 1);
  const int to = std::clamp(static_cast<int>(std::ceil(middle + reach - 0.5)), from + 1, axis.highest);
  const auto exact = [&](int k) { return std::max(0.0, 1 - std::abs(k + 0.5 - middle) / reach); };
  double sum = 0;
  for (int k = from; k < to; ++k) sum += exact(k);
  std::uint16_t* weight = axis.weights.data() + index * axis.stride;
  int left = kOne, heaviest = 0;
  for (int k = from; k < to; ++k) {
    const double share = sum > 0 ? exact(k) / sum : 1.0 / (to - from);
    weight[k - from] = static_cast<std::uint16_t>(std::min<long>(std::lround(share * kOne), kOne - 1));
    left -= weight[k - from];
    if (weight[k - from] > weight[heaviest]) heaviest = k - from;
  }
  // What rounding left over, but for a weight of 1.
  weight[heaviest] = static_cast<std::uint16_t>(std::min(weight[heaviest] + left, kOne - 1));
  axis.first[index] = from;
  axis.count[index] = to - from;
}

// Output pixels in reverse order with `mirrored`.
void plan_axis(ResizeAxis& axis, double start, double length, int pixels, int out_size, bool mirrored) {
  const double step = length / out_size;
  const double reach = std::max(step, 1.0);  // of the filter to either side, in input pixels
  axis.lowest = std::clamp(static_cast<int>(std::floor(start)), 0, pixels - 1);
  axis.highest = std::clamp(static_cast<int>(std::ceil(start + length)), axis.lowest + 1, pixels);
  axis.stride = static_cast<std::size_t>(std::ceil(reach)) * 2 + 1;
  axis.first.resize(static_cast<std::size_t>(out_size));
  axis.count.resize(static_cast<std::size_t>(out_size));
  axis.weights.resize(static_cast<std::size_t>(out_size) * axis.stride);
  for (int i = 0; i < out_size; ++i)
    plan_pixel(axis, static_cast<std::size_t>(mirrored ? out_size - 1 - i : i), start + (i + 0.5) * step,
               reach);
}

}  // namespace

void Resizer::resize(const RgbxImage& image, const Box& box, bool flip, int out_size,
                     std::span<std::uint8_t> out) {
  plan_axis(x_, box.left, box.width, image.size.width, out_size, flip);
  plan_axis(y_, box.top, box.height, image.size.height, out_size, false);
  const auto pixels = static_cast<std::size_t>(x_.highest - x_.lowest);
  rows_.resize(pixels * kLanes);
  strip_.resize(pixels * kLanes);
  const auto size = static_cast<std::size_t>(out_size);
  for (std::size_t y = 0; y < size; y += kStripRows)
    resize_rows(image, y, std::min(kStripRows, size - y), size, out.data() + y * size * 3);
}

void Resizer::resize_rows(const RgbxImage& image, std::size_t y, std::size_t rows, std::size_t size,
                          std::uint8_t* out) {
  const std::size_t row_bytes = static_cast<std::size_t>(image.size.width) * 4,
                    row = rows_.size() / kStripRows;
  const std::uint8_t* corner = image.pixels.data() + static_cast<std::size_t>(x_.lowest) * 4;
  for (std::size_t r = 0; r < rows; ++r)
    blend_rows(corner + static_cast<std::size_t>(y_.first[y + r]) * row_bytes, row_bytes,
               y_.weights.data() + (y + r) * y_.stride, y_.count[y + r],
               std::span(rows_).subspan(r * row, row));
  exchange(rows_.data(), row / 4, strip_.data());
  for (std::size_t x = 0; x < size; ++x) {
    const auto levels = blend_columns(
        strip_.data() + static_cast<std::size_t>(x_.first[x] - x_.lowest) * kLanes,
        x_.weights.data() + x * x_.stride, x_.count[x], resize_rounding(x_.count[x], y_.count[y]));
    for (std::size_t r = 0; r < rows; ++r) std::memcpy(out + (r * size + x) * 3, levels.data() + r * 4, 3);
  }
}

}  // namespace plumb
