// How small a difference a number of runs with a given spread shows.
#pragma once

#include <cstddef>
#include <span>

namespace plumb {

// Standard deviation of the logarithms around each side's own mean, of both sides together: the relative
// spread from run to run. Needs 3 values in all.
double pooled_log_deviation(std::span<const double> first, std::span<const double> second);

// A difference is shown if Mann and Whitney's test has at most `tail` on that side, and its estimate is above
// `least_effect`.
struct ShownWhen {
  enum class Estimate { medians, pairs };  // ratio of medians, or median of the ratios of pairs (shift_ratio)

  double tail = 0.025;
  double least_effect = 0;  // of logarithms
  Estimate estimate = Estimate::medians;
};

// The smallest difference of logarithms that is shown four times in five, of normal values with the given
// spread; infinite if so few runs can show none. Up to 50 runs by 1000 fixed draws, above by Noether's
// formula (1987).
double smallest_shift(std::size_t first_runs, std::size_t second_runs, double log_deviation,
                      const ShownWhen& shown);

}  // namespace plumb
