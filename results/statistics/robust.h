// Statistics that a few odd values don't move, for series of step times and for the figures of few runs.
#pragma once

#include <cmath>
#include <span>
#include <vector>

namespace plumb {

// 1.4826 times the median distance from `center`: the standard deviation, were the values normal. 0 without
// values.
double median_deviation(std::span<const double> values, double center);

// A line through a series and the noise around it.
struct Trend {
  double level = 0;        // median of the values
  double first = 0;        // the line's value at index 0
  double slope = 0;        // per index
  double deviation = 0;    // of the residuals (median_deviation)
  double correlation = 0;  // of a residual with the next, 0 … 0.95

  double at(double index) const { return first + slope * index; }
  // Standard error of the median of `count` values in a row, and of the line's rise over `count` indices.
  // Both 1.25 times that of a mean (the median of normal values), and widened for `correlation` as that of a
  // first-order autoregressive series is: sqrt((1 + r) / (1 - r)).
  double median_error(std::size_t count) const;
  // A least-squares slope over n equally spaced values has sqrt(12 / n^3) of their deviation.
  double rise_error(std::size_t count) const { return std::sqrt(12.0) * median_error(count); }
};

// Theil and Sen's line through the medians of up to 20 blocks in a row: a fifth of the blocks may be
// anything. Needs at least 10 values.
Trend trend_of(std::span<const double> values);

}  // namespace plumb
