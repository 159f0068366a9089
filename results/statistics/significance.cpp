#include "results/statistics/significance.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/error.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

void check_figures(std::span<const double> figures) {
  for (const double figure : figures)
    if (!(figure > 0) || !std::isfinite(figure))
      throw Error(ExitCode::bad_data,
                  "a run's figure is {:f}, which is no throughput to compare; leave that run out", figure);
}

// `out` is scratch of values.size(). The generator's remainder favors low indices by less than 2^-50.
double resampled_median(std::span<const double> values, std::mt19937_64& generator,
                        std::vector<double>& out) {
  out.resize(values.size());
  for (double& value : out) value = values[generator() % values.size()];
  const auto middle = out.begin() + static_cast<std::ptrdiff_t>(out.size() / 2);
  std::nth_element(out.begin(), middle, out.end());
  if (out.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(out.begin(), middle)) / 2;
}

}  // namespace

std::optional<Interval> median_interval(std::span<const double> values, double wanted) {
  if (values.size() < 2) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  // P(fewer than k of n values lie below the median) = P(B < k), B binomial (n, 1/2).
  const boost::math::binomial below(static_cast<double>(sorted.size()), 0.5);
  const auto coverage = [&](std::size_t left_out) {
    return 1 - 2 * cdf(below, static_cast<double>(left_out));
  };
  std::size_t left_out = 0, too_many = (sorted.size() + 1) / 2;  // of either end
  while (left_out + 1 < too_many) {
    const std::size_t middle = (left_out + too_many) / 2;
    (coverage(middle) >= wanted ? left_out : too_many) = middle;
  }
  return Interval{sorted[left_out], sorted[sorted.size() - 1 - left_out], coverage(left_out)};
}

Interval ratio_interval(std::span<const double> first, std::span<const double> second, double confidence,
                        int resamples, std::uint64_t seed) {
  check_figures(first);
  check_figures(second);
  if (first.size() < 2 || second.size() < 2 || resamples < 1) {
    const double ratio = median(second) / median(first);
    return {ratio, ratio, 0};
  }
  std::mt19937_64 generator(seed);
  std::vector<double> scratch, ratios(static_cast<std::size_t>(resamples));
  for (double& ratio : ratios) {
    const double below = resampled_median(first, generator, scratch);
    ratio = resampled_median(second, generator, scratch) / below;
  }
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double share) {
    return ratios[static_cast<std::size_t>(std::lround(share * static_cast<double>(ratios.size() - 1)))];
  };
  return {at((1 - confidence) / 2), at((1 + confidence) / 2), confidence};
}

double shift_ratio(std::span<const double> first, std::span<const double> second) {
  std::vector<double> logarithms;
  for (const double a : first)
    for (const double b : second) logarithms.push_back(std::log(b / a));
  return std::exp(median(logarithms));
}

Comparison compare(std::span<const double> first, std::span<const double> second, const Criteria& criteria) {
  Comparison comparison{first.size(), second.size(), median(second) / median(first)};
  comparison.ratio_range = ratio_interval(first, second, 1 - criteria.significance);
  comparison.test = mann_whitney(first, second);
  comparison.smallest_shown = std::numeric_limits<double>::infinity();
  if (std::min(first.size(), second.size()) < std::max<std::size_t>(criteria.least_runs, 2))
    return comparison;
  const double shift = smallest_shift(first.size(), second.size(), pooled_log_deviation(first, second),
                                      {criteria.significance / 2, std::log1p(criteria.min_effect)});
  comparison.smallest_shown = std::expm1(shift);
  const bool significant = comparison.test.p_two_sided <= criteria.significance;
  const bool large = std::abs(comparison.ratio - 1) > criteria.min_effect;
  comparison.verdict = !significant || !large ? SpeedVerdict::none_shown
                       : comparison.ratio > 1 ? SpeedVerdict::faster
                                              : SpeedVerdict::slower;
  return comparison;
}

}  // namespace plumb
