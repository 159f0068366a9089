#include "results/statistics/statistics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

namespace plumb {

double pairwise_sum(std::span<const double> values) {
  constexpr std::size_t kBlock = 128;
  const std::size_t count = values.size();
  if (count < 8) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
  if (count <= kBlock) {
    std::array<double, 8> part;
    std::copy_n(values.begin(), 8, part.begin());
    std::size_t i = 8;
    for (; i + 8 <= count; i += 8)
      for (std::size_t lane = 0; lane < 8; ++lane) part[lane] += values[i + lane];
    double sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    for (; i < count; ++i) sum += values[i];
    return sum;
  }
  const std::size_t half = count / 2 - (count / 2) % 8;
  return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
}

double mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return pairwise_sum(values) / static_cast<double>(values.size());
}

double median(std::span<const double> values) {
  const bool has_nan = std::ranges::any_of(values, [](double value) { return std::isnan(value); });
  if (values.empty() || has_nan) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const std::size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return (sorted[middle - 1] + sorted[middle]) / 2;
}

ValueRange range_of(std::span<const double> values) {
  const auto [low, high] = std::ranges::minmax(values);
  return {low, median(values), high};
}

double round_numpy(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return std::rint(value * scale) / scale;
}

double round_decimal(double value, int decimals) {
  if (!std::isfinite(value)) return value;
  std::array<char, 400> text;  // 309 digits before the point at most
  const auto printed =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  double rounded = value;
  std::from_chars(text.data(), printed.ptr, rounded);
  return rounded;
}

}  // namespace plumb
