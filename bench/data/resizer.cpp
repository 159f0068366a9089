#include "bench/data/resizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

namespace plumb {
namespace {

// Rows are resized along y one by one, then along x together: whole vectors of bytes or 16-bit numbers in
// both, which the compiler sees as such from 32 on.
constexpr std::size_t kStripRows = 8, kLanes = kStripRows * 4;

std::uint16_t scaled_by(std::uint16_t value, std::uint16_t weight) {
  return static_cast<std::uint16_t>((std::uint32_t{value} * weight) >> 16);
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

// One output pixel of each row, in whole grey levels. `half` rounds, and makes up for products cut short.
std::array<std::uint8_t, kLanes> blend_columns(const std::uint16_t* columns, const std::uint16_t* weights,
                                               int count, std::uint16_t half) {
  std::array<std::uint16_t, kLanes> sum;
  for (std::size_t i = 0; i < kLanes; ++i) sum[i] = half;
  for (int k = 0; k < count; ++k, columns += kLanes)
    for (std::size_t i = 0; i < kLanes; ++i)
      sum[i] = static_cast<std::uint16_t>(sum[i] + scaled_by(columns[i], weights[k]));
  std::array<std::uint8_t, kLanes> levels;
  for (std::size_t i = 0; i < kLanes; ++i) levels[i] = static_cast<std::uint8_t>(sum[i] >> 8);
  return levels;
}

}  // namespace

void Resizer::Axis::plan(double start, double length, int pixels, int out_size, bool mirrored) {
  const double step = length / out_size;
  const double reach = std::max(step, 1.0);  // of the filter to either side, in input pixels
  lowest = std::clamp(static_cast<int>(std::floor(start)), 0, pixels - 1);
  highest = std::clamp(static_cast<int>(std::ceil(start + length)), lowest + 1, pixels);
  stride = static_cast<std::size_t>(std::ceil(reach)) * 2 + 1;
  first.resize(static_cast<std::size_t>(out_size));
  count.resize(static_cast<std::size_t>(out_size));
  weights.resize(static_cast<std::size_t>(out_size) * stride);
  for (int i = 0; i < out_size; ++i)
    plan_pixel(static_cast<std::size_t>(mirrored ? out_size - 1 - i : i), start + (i + 0.5) * step, reach);
}

void Resizer::Axis::plan_pixel(std::size_t index, double middle, double reach) {
  constexpr int kOne = 1 << 16;
  // Pixels whose middle is less than `reach` away, those of the box only.
  const int from = std::clamp(static_cast<int>(std::floor(middle - reach + 0.5)), lowest, highest - 1);
  const int to = std::clamp(static_cast<int>(std::ceil(middle + reach - 0.5)), from + 1, highest);
  const auto exact = [&](int k) { return std::max(0.0, 1 - std::abs(k + 0.5 - middle) / reach); };
  double sum = 0;
  for (int k = from; k < to; ++k) sum += exact(k);
  std::uint16_t* weight = weights.data() + index * stride;
  int left = kOne, heaviest = 0;
  for (int k = from; k < to; ++k) {
    const double share = sum > 0 ? exact(k) / sum : 1.0 / (to - from);
    weight[k - from] = static_cast<std::uint16_t>(std::min<long>(std::lround(share * kOne), kOne - 1));
    left -= weight[k - from];
    if (weight[k - from] > weight[heaviest]) heaviest = k - from;
  }
  // What rounding left over, but for a weight of 1.
  weight[heaviest] = static_cast<std::uint16_t>(std::min(weight[heaviest] + left, kOne - 1));
  first[index] = from;
  count[index] = to - from;
}

void Resizer::resize(const RgbxImage& image, const Box& box, bool flip, int out_size,
                     std::span<std::uint8_t> out) {
  x_.plan(box.left, box.width, image.size.width, out_size, flip);
  y_.plan(box.top, box.height, image.size.height, out_size, false);
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
    // A product loses half of 1 / 2^8 grey level; more than 127 can't be added to white.
    const auto lost = std::min<std::size_t>((x_.count[x] + y_.count[y]) / 2, 127);
    const auto levels =
        blend_columns(strip_.data() + static_cast<std::size_t>(x_.first[x] - x_.lowest) * kLanes,
                      x_.weights.data() + x * x_.stride, x_.count[x], static_cast<std::uint16_t>(128 + lost));
    for (std::size_t r = 0; r < rows; ++r) std::memcpy(out + (r * size + x) * 3, levels.data() + r * 4, 3);
  }
}

}  // namespace plumb
