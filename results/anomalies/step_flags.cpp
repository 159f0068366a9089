#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "results/anomalies/flags.h"
#include "results/statistics/robust.h"
#include "results/statistics/stalls.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// A shorter window says nothing about itself.
constexpr std::size_t kLeastSteps = 30;
// Smaller changes of a step time drown in the differences between runs.
constexpr double kLeastChange = 0.02;
// A change must be so many standard errors, as errors are estimated from the same few steps: of steady series
// of 100 steps, correlated by up to 0.6, fewer than 5 in 1000 are flagged.
constexpr double kLeastErrors = 3.7;
// Outliers that take less of the window than two runs must differ by to differ at all (kMinEffect);
// a single one, which happens to any run, twice that.
constexpr double kOutlierCost = 0.01;
// A step counts as an outlier from here on, in deviations and in parts of the median.
constexpr double kOutlierDeviations = 5, kOutlierExcess = 0.1;

bool rises(const Trend& trend, std::size_t count) {
  const double rise = std::abs(trend.slope) * static_cast<double>(count);
  return rise >= kLeastChange * trend.level && rise >= kLeastErrors * trend.rise_error(count);
}

}  // namespace

std::string whole_percent(double share) {
  const double percent = 100 * share;
  const bool decimal = percent < 9.95 && std::abs(percent - std::round(percent)) >= 0.05;
  return fmt::format("{:.{}f} %", percent, decimal ? 1 : 0);
}

std::string duration_text(double seconds) {
  return seconds >= 1 ? fmt::format("{:.4g} s", seconds) : fmt::format("{:.4g} ms", 1000 * seconds);
}

std::span<const double> settled(std::span<const double> window) {
  return window.subspan(window.size() / 5);
}

std::optional<Note> warmup_flag(std::span<const double> window, std::int64_t warmup) {
  if (window.size() < kLeastSteps) return std::nullopt;
  const std::span<const double> rest = settled(window);
  const Trend trend = trend_of(rest);
  const bool sloped = rises(trend, rest.size());
  const auto skipped = static_cast<double>(window.size() - rest.size());
  const auto expected = [&](std::size_t step) {
    return sloped ? trend.at(static_cast<double>(step) - skipped) : trend.level;
  };
  const std::size_t first_count = std::max<std::size_t>(5, window.size() / 10);
  const auto excess = [&](std::size_t begin, std::size_t count) {
    std::vector<double> values;
    for (std::size_t i = begin; i < begin + count; ++i) values.push_back(window[i] - expected(i));
    return median(values);
  };
  const double first_excess = excess(0, first_count);
  const double error = std::hypot(trend.median_error(first_count), trend.median_error(rest.size()));
  if (first_excess < kLeastChange * trend.level || first_excess < kLeastErrors * error) return std::nullopt;
  std::size_t over = first_count;  // steps until five in a row are as the rest is
  while (over + 5 <= window.size() && excess(over, 5) >= kLeastChange / 2 * trend.level) over += 5;
  return Note{
      "warmup_not_over",
      fmt::format("the warm-up was not over: the first {} steps of the window are {} slower than the rest "
                  "({} against {}); --warmup {} would leave them out",
                  first_count, whole_percent(first_excess / expected(first_count / 2)),
                  duration_text(expected(first_count / 2) + first_excess),
                  duration_text(expected(first_count / 2)), warmup + static_cast<std::int64_t>(over))};
}

std::optional<Note> drift_flag(std::span<const double> window) {
  if (window.size() < kLeastSteps) return std::nullopt;
  const std::span<const double> rest = settled(window);
  const Trend trend = trend_of(rest);
  if (!rises(trend, rest.size())) return std::nullopt;
  const double begin = trend.at(0), end = trend.at(static_cast<double>(rest.size() - 1));
  return Note{"drift",
              fmt::format("steps became {} {} over the window (from {} to {})",
                          whole_percent(std::abs(end / begin - 1)), end > begin ? "slower" : "faster",
                          duration_text(begin), duration_text(end))};
}

std::optional<Note> outliers_flag(std::span<const double> window) {
  if (window.size() < kLeastSteps) return std::nullopt;
  const double level = median(window);
  const double limit =
      level + std::max(kOutlierDeviations * median_deviation(window, level), kOutlierExcess * level);
  double excess = 0, longest = 0, total = 0;
  std::size_t count = 0;
  for (const double step : window) {
    total += step;
    if (step <= limit) continue;
    ++count;
    excess += step - level;
    longest = std::max(longest, step);
  }
  if (excess < (count < 2 ? 2 : 1) * kOutlierCost * total) return std::nullopt;
  return Note{
      "outliers",
      fmt::format(
          "{} of {} steps took far longer than the median of {}, up to {}; they cost {} of the window", count,
          window.size(), duration_text(level), duration_text(longest), whole_percent(excess / total))};
}

std::optional<Note> stall_flag(std::span<const double> window, std::int64_t warmup) {
  const Stalls stalls = find_stalls(window);
  if (stalls.count == 0) return std::nullopt;
  return Note{"outliers", "the run " + stall_text(stalls, warmup + std::int64_t(stalls.longest))};
}

}  // namespace plumb
