#include "results/significance.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "models/error.h"
#include "models/random.h"
#include "results/rank_test.h"
#include "results/statistics.h"

namespace plumb {
namespace {

void check_figures(std::span<const double> figures) {
  for (const double figure : figures)
    if (!(figure > 0) || !std::isfinite(figure))
      throw Error(ExitCode::bad_data, "a run's figure is " + std::to_string(figure) +
                                          ", which is no throughput to compare; leave that run out");
}

double median_of(std::span<const double> values) {
  return median(std::vector<double>(values.begin(), values.end()));
}

// `out` is scratch of values.size(). The generator's remainder favours low indices by less than 2^-50.
double resampled_median(std::span<const double> values, std::mt19937_64& generator,
                        std::vector<double>& out) {
  out.resize(values.size());
  for (double& value : out) value = values[generator() % values.size()];
  const auto middle = out.begin() + static_cast<std::ptrdiff_t>(out.size() / 2);
  std::nth_element(out.begin(), middle, out.end());
  if (out.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(out.begin(), middle)) / 2;
}

// Standard deviation of the logarithms around each side's own mean.
double pooled_log_deviation(std::span<const double> first, std::span<const double> second) {
  double squares = 0;
  for (const auto& side : {first, second}) {
    double sum = 0;
    for (const double value : side) sum += std::log(value);
    const double log_mean = sum / static_cast<double>(side.size());
    for (const double value : side) squares += std::pow(std::log(value) - log_mean, 2);
  }
  return std::sqrt(squares / static_cast<double>(first.size() + second.size() - 2));
}

// The smallest shift of the second of two standard normal samples that is significant and, in units of
// `deviation`, moves the medians by more than `least_effect`, in one draw. U counts the pairs whose
// difference is below the shift, so it reaches `critical` at the critical-th smallest difference.
double shift_shown(std::span<const float> first, std::span<const float> second, std::size_t critical,
                   double deviation, double least_effect) {
  std::vector<double> differences;
  for (const float a : first)
    for (const float b : second) differences.push_back(static_cast<double>(a) - static_cast<double>(b));
  const auto smallest = differences.begin() + static_cast<std::ptrdiff_t>(critical - 1);
  std::nth_element(differences.begin(), smallest, differences.end());
  const double medians = median({first.begin(), first.end()}) - median({second.begin(), second.end()});
  return std::max(*smallest * deviation, least_effect + medians * deviation);
}

constexpr double kPower = 0.8;  // four times in five

double smallest_shown(std::size_t first_runs, std::size_t second_runs, double deviation,
                      const Criteria& criteria) {
  const double least_effect = std::log1p(criteria.min_effect);
  if (first_runs + second_runs > kMostExactValues) {
    // Noether 1987: power of the rank test; pi / 3 is what it needs more than the t test of normal values.
    const boost::math::normal standard;
    const double quantiles = quantile(standard, 1 - criteria.significance / 2) + quantile(standard, kPower);
    const double runs = 1 / (1 / static_cast<double>(first_runs) + 1 / static_cast<double>(second_runs));
    const double shift = quantiles * deviation * std::sqrt(std::acos(-1.0) / 3 / runs);
    return std::expm1(std::max(shift, least_effect));
  }
  const auto critical = critical_u(first_runs, second_runs, criteria.significance / 2);
  if (!critical) return std::numeric_limits<double>::infinity();
  constexpr std::size_t kDraws = 1000;
  const PhiloxKey key = stream_key(1, "smallest shown");
  std::vector<float> draw(first_runs + second_runs);
  std::vector<double> shifts;
  for (std::size_t i = 0; i < kDraws; ++i) {
    fill_normal(key, 0, 1, draw, i * draw.size());
    const std::span<const float> values(draw);
    shifts.push_back(shift_shown(values.first(first_runs), values.subspan(first_runs), *critical, deviation,
                                 least_effect));
  }
  const auto at_power = shifts.begin() + static_cast<std::ptrdiff_t>(kPower * kDraws);
  std::nth_element(shifts.begin(), at_power, shifts.end());
  return std::expm1(*at_power);
}

}  // namespace

std::optional<Interval> median_interval(std::span<const double> values, double wanted) {
  if (values.size() < 2) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  // Of n values fewer than k lie below the median with P(B < k), B binomial (n, 1/2).
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
    const double ratio = median_of(second) / median_of(first);
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
  return std::exp(median(std::move(logarithms)));
}

Comparison compare(std::span<const double> first, std::span<const double> second, const Criteria& criteria) {
  check_figures(first);
  check_figures(second);
  Comparison comparison{first.size(), second.size(), median_of(second) / median_of(first)};
  comparison.ratio_range = ratio_interval(first, second, 1 - criteria.significance);
  comparison.test = mann_whitney(first, second);
  comparison.smallest_shown = std::numeric_limits<double>::infinity();
  if (std::min(first.size(), second.size()) < std::max<std::size_t>(criteria.least_runs, 2))
    return comparison;
  comparison.smallest_shown =
      smallest_shown(first.size(), second.size(), pooled_log_deviation(first, second), criteria);
  const bool significant = comparison.test.p_two_sided <= criteria.significance;
  const bool large = std::abs(comparison.ratio - 1) > criteria.min_effect;
  comparison.verdict = !significant || !large ? Verdict::none_shown
                       : comparison.ratio > 1 ? Verdict::faster
                                              : Verdict::slower;
  return comparison;
}

}  // namespace plumb
