#include <algorithm>
#include <cmath>
#include <string>

#include "base/units.h"
#include "results/statistics/significance.h"

namespace plumb {
namespace {

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

// "; measure 4 on either side": so many as can show a difference at all.
std::string remedy(const Criteria& criteria) {
  std::size_t runs = std::max<std::size_t>(criteria.least_runs, 2);
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
