#include "results/statistics/significance.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

void check_figures(std::span<const double> figures) {
  for (const double figure : figures)
    if (!(figure > 0) || !std::isfinite(figure))
      throw Error(ExitCode::bad_data, "a run's figure is {:f}, which is not a throughput; leave that run out",
                  figure);
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

std::string p_text(const RankTest& test) {
  const double p = test.p_two_sided;
  if (p < 0.0001) return "p < 0.0001";
  return fmt::format("p = {:.{}f}", p, p < 0.001 ? 4 : p < 0.0995 ? 3 : 2);
}

// Above 2x, print a factor instead of a percentage.
constexpr double kPercentBelow = 2;

std::string change_text(const Comparison& comparison, const Criteria& criteria) {
  const Interval& range = comparison.ratio_range;
  const std::string confidence =
      given_percent(range.confidence > 0 ? range.confidence : 1 - criteria.significance);
  if (comparison.ratio >= kPercentBelow)
    return fmt::format("{:.2f} times as fast ({} interval {:.2f} to {:.2f}, {})", comparison.ratio,
                       confidence, range.low, range.high, p_text(comparison.test));
  const bool faster = comparison.ratio > 1;
  const double low = faster ? range.low - 1 : 1 - range.high, high = faster ? range.high - 1 : 1 - range.low;
  return fmt::format("{} % {} ({} interval {} to {} %, {})", percent_text(std::abs(comparison.ratio - 1)),
                     faster ? "faster" : "slower", confidence, percent_text(low), percent_text(high),
                     p_text(comparison.test));
}

// "; measure 5 on either side": enough, and as many as can show a difference at all.
std::string remedy(const Criteria& criteria) {
  std::size_t runs = std::max(criteria.least_runs, kEnoughRuns);
  while (2 * runs < kMostExactValues && !critical_u(runs, runs, criteria.significance / 2)) ++runs;
  return fmt::format("; measure {} on either side", runs);
}

std::string none_text(const Comparison& comparison, const Criteria& criteria) {
  if (comparison.test.p_two_sided <= criteria.significance)
    return fmt::format("no difference above {} shown ({} % {}, {})", given_percent(criteria.min_effect),
                       percent_text(std::abs(comparison.ratio - 1)),
                       comparison.ratio > 1 ? "faster" : "slower", p_text(comparison.test));
  if (!std::isfinite(comparison.smallest_shown))
    return fmt::format("no difference shown; {} and {} runs can't show any at a significance of {}{}",
                       comparison.first_runs, comparison.second_runs, given_percent(criteria.significance),
                       remedy(criteria));
  return fmt::format("no difference shown; these runs would have shown {} %",
                     percent_text(comparison.smallest_shown));
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

bool is_only_range(const Interval& interval) {
  constexpr double kLeastConfidence = 0.9;
  return interval.confidence < kLeastConfidence;
}

std::string confidence_text(const Interval& interval) {
  return is_only_range(interval) ? "range" : fmt::format("{:.1f} %", 100 * interval.confidence);
}

std::string verdict_text(const Comparison& comparison, const Criteria& criteria) {
  if (comparison.verdict == SpeedVerdict::none_shown) return none_text(comparison, criteria);
  if (comparison.verdict != SpeedVerdict::too_few) return change_text(comparison, criteria);
  const std::size_t runs = std::min(comparison.first_runs, comparison.second_runs);
  return fmt::format("{} {} too few to say{}", counted(runs, "run"), runs == 1 ? "is" : "are",
                     remedy(criteria));
}

}  // namespace plumb
