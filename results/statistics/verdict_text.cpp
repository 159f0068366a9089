#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "results/statistics/rank_test.h"
#include "results/statistics/significance.h"

namespace plumb {
namespace {

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

// "7.3", "-0.4": without a sign where it rounds to 0.
std::string percent(double share) {
  const double rounded = std::round(1000 * share) / 10;
  return fixed(rounded == 0 ? 0.0 : rounded, 1);
}

// "1 %", "0.25 %": as it was given.
std::string given_percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g %%", 100 * share);
  return text;
}

std::string p_text(const RankTest& test) {
  const double p = test.p_two_sided;
  if (p < 0.0001) return "p < 0.0001";
  return "p = " + fixed(p, p < 0.001 ? 4 : p < 0.0995 ? 3 : 2);
}

// From twice on a percentage would have to be thought about.
constexpr double kPercentBelow = 2;

std::string change_text(const Comparison& comparison, const Criteria& criteria) {
  const Interval& range = comparison.ratio_range;
  const std::string of_range =
      " (" + given_percent(range.confidence > 0 ? range.confidence : 1 - criteria.significance) +
      " interval ";
  if (comparison.ratio >= kPercentBelow)
    return fixed(comparison.ratio, 2) + " times as fast" + of_range + fixed(range.low, 2) + " to " +
           fixed(range.high, 2) + ", " + p_text(comparison.test) + ")";
  const bool faster = comparison.ratio > 1;
  const double low = faster ? range.low - 1 : 1 - range.high, high = faster ? range.high - 1 : 1 - range.low;
  return percent(std::abs(comparison.ratio - 1)) + " % " + (faster ? "faster" : "slower") + of_range +
         percent(low) + " to " + percent(high) + " %, " + p_text(comparison.test) + ")";
}

// "; measure 4 on either side": so many as can show a difference at all.
std::string remedy(const Criteria& criteria) {
  std::size_t runs = std::max<std::size_t>(criteria.least_runs, 2);
  while (2 * runs < kMostExactValues && !critical_u(runs, runs, criteria.significance / 2)) ++runs;
  return "; measure " + std::to_string(runs) + " on either side";
}

std::string none_text(const Comparison& comparison, const Criteria& criteria) {
  if (comparison.test.p_two_sided <= criteria.significance)
    return "no difference above " + given_percent(criteria.min_effect) + " shown (" +
           percent(std::abs(comparison.ratio - 1)) + " % " + (comparison.ratio > 1 ? "faster" : "slower") +
           ", " + p_text(comparison.test) + ")";
  if (!std::isfinite(comparison.smallest_shown))
    return "no difference shown; " + std::to_string(comparison.first_runs) + " and " +
           std::to_string(comparison.second_runs) + " runs can't show any at a significance of " +
           given_percent(criteria.significance) + remedy(criteria);
  return "no difference shown; these runs would have shown " + percent(comparison.smallest_shown) + " %";
}

}  // namespace

std::string verdict_text(const Comparison& comparison, const Criteria& criteria) {
  switch (comparison.verdict) {
    case Verdict::faster:
    case Verdict::slower:
      return change_text(comparison, criteria);
    case Verdict::none_shown:
      return none_text(comparison, criteria);
    case Verdict::too_few:
      break;
  }
  const std::size_t runs = std::min(comparison.first_runs, comparison.second_runs);
  return std::to_string(runs) + (runs == 1 ? " run is" : " runs are") + " too few to say" + remedy(criteria);
}

}  // namespace plumb
