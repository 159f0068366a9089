#include "results/statistics/robust.h"

#include <algorithm>
#include <cmath>

#include "base/ranges.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr double kMedianToMeanError = 1.2533;  // sqrt(pi / 2)

// Correlation of neighbors, each clipped to three deviations.
double neighbor_correlation(const std::vector<double>& residuals, double deviation) {
  constexpr double kMostTaken = 0.95;  // above it a short series tells nothing about itself
  double products = 0, squares = 0, previous = 0;
  for (const double residual : residuals) {
    const double clipped = std::clamp(residual, -3 * deviation, 3 * deviation);
    products += clipped * previous;
    squares += clipped * clipped;
    previous = clipped;
  }
  if (!(squares > 0)) return 0;
  // n residuals of a line give an estimate that is low by (2 + 4 r) / n (Marriott & Pope 1954, with a slope).
  const double raw = products / squares;
  return std::clamp(raw + (2 + 4 * raw) / static_cast<double>(residuals.size()), 0.0, kMostTaken);
}

}  // namespace

double median_deviation(std::span<const double> values, double center) {
  if (values.empty()) return 0;
  return 1.4826 * median(mapped(values, [&](double value) { return std::abs(value - center); }));
}

double Trend::median_error(std::size_t count) const {
  const double widening = std::sqrt((1 + correlation) / (1 - correlation));
  return kMedianToMeanError * widening * deviation / std::sqrt(static_cast<double>(count));
}

Trend trend_of(std::span<const double> values) {
  constexpr std::size_t kMostBlocks = 20, kLeastPerBlock = 4;
  const std::size_t blocks = std::clamp<std::size_t>(values.size() / kLeastPerBlock, 2, kMostBlocks);
  std::vector<double> middles, medians, slopes, offsets;
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t begin = block * values.size() / blocks, end = (block + 1) * values.size() / blocks;
    medians.push_back(median(values.subspan(begin, end - begin)));
    middles.push_back(static_cast<double>(begin + end - 1) / 2);
  }
  for (std::size_t i = 0; i < blocks; ++i)
    for (std::size_t j = i + 1; j < blocks; ++j)
      slopes.push_back((medians[j] - medians[i]) / (middles[j] - middles[i]));
  Trend trend;
  trend.level = median(values);
  trend.slope = median(slopes);
  for (std::size_t i = 0; i < blocks; ++i) offsets.push_back(medians[i] - trend.slope * middles[i]);
  trend.first = median(offsets);
  std::vector<double> residuals;
  for (std::size_t i = 0; i < values.size(); ++i)
    residuals.push_back(values[i] - trend.at(static_cast<double>(i)));
  trend.deviation = median_deviation(residuals, 0);
  trend.correlation = neighbor_correlation(residuals, trend.deviation);
  return trend;
}

}  // namespace plumb
