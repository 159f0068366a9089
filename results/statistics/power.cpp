// How small a difference a number of runs with a given spread shows.
#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "results/statistics/significance.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr double kPower = 0.8;  // four times in five

// The smallest shift of the second of two standard normal samples that one draw would show. U counts the
// pairs whose difference is below the shift, so it reaches `critical` at the critical-th smallest difference.
double shift_shown(std::span<const float> first, std::span<const float> second, std::size_t critical,
                   double deviation, const ShownWhen& shown) {
  std::vector<double> differences;
  differences.reserve(first.size() * second.size());
  for (const float a : first)
    for (const float b : second) differences.push_back(static_cast<double>(a) - static_cast<double>(b));
  const auto at = [&](std::size_t rank) {  // the value that has `rank` values before it
    const auto place = differences.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(differences.begin(), place, differences.end());
    return *place;
  };
  const std::size_t pairs = differences.size();
  const double estimated = shown.estimate == ShownWhen::Estimate::pairs
                               ? (at((pairs - 1) / 2) + at(pairs / 2)) / 2
                               : median(std::vector<double>(first.begin(), first.end())) -
                                     median(std::vector<double>(second.begin(), second.end()));
  const double smallest = at(critical - 1);
  return std::max(smallest * deviation, shown.least_effect + estimated * deviation);
}

// Power of the rank test; pi / 3 is what it needs more than the t test of normal values. The estimate, with a
// variance of pi / 2 (medians) or pi / 3 (pairs) of that of a difference of means, must be above the least
// effect four times in five, too.
double noether_shift(double first_runs, double second_runs, double deviation, const ShownWhen& shown) {
  const boost::math::normal standard;
  const double quantiles = quantile(complement(standard, shown.tail)) + quantile(standard, kPower);
  const double pi = std::acos(-1.0), error = deviation * std::sqrt(1 / first_runs + 1 / second_runs);
  const double estimate_error =
      error * std::sqrt(shown.estimate == ShownWhen::Estimate::pairs ? pi / 3 : pi / 2);
  return std::max(quantiles * error * std::sqrt(pi / 3),
                  shown.least_effect + quantile(standard, kPower) * estimate_error);
}

}  // namespace

double pooled_log_deviation(std::span<const double> first, std::span<const double> second) {
  double squares = 0;
  for (const auto& side : {first, second}) {
    std::vector<double> logarithms;
    for (const double value : side) logarithms.push_back(std::log(value));
    const double level = mean(logarithms);
    for (const double logarithm : logarithms) squares += (logarithm - level) * (logarithm - level);
  }
  return std::sqrt(squares / static_cast<double>(first.size() + second.size() - 2));
}

double smallest_shift(std::size_t first_runs, std::size_t second_runs, double log_deviation,
                      const ShownWhen& shown) {
  if (first_runs + second_runs > kMostExactValues)
    return noether_shift(static_cast<double>(first_runs), static_cast<double>(second_runs), log_deviation,
                         shown);
  const auto critical = critical_u(first_runs, second_runs, shown.tail);
  if (!critical) return std::numeric_limits<double>::infinity();
  constexpr std::size_t kDraws = 1000;
  const PhiloxKey key = stream_key(1, "smallest shift");
  std::vector<float> draw(first_runs + second_runs);
  std::vector<double> shifts;
  for (std::size_t i = 0; i < kDraws; ++i) {
    fill_normal(key, 0, 1, draw, i * draw.size());
    const std::span<const float> values(draw);
    shifts.push_back(
        shift_shown(values.first(first_runs), values.subspan(first_runs), *critical, log_deviation, shown));
  }
  const auto at_power = shifts.begin() + static_cast<std::ptrdiff_t>(kPower * kDraws);
  std::nth_element(shifts.begin(), at_power, shifts.end());
  return *at_power;
}

}  // namespace plumb
