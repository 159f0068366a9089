#include "results/report/run_parts.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "results/record/program_format.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::size_t kMostBins = 60;
constexpr std::size_t kLeastForPercentiles = 100;
// Beyond this many quartile ranges above the upper quartile a step no longer belongs to the body of the
// distribution.
constexpr double kFarInQuartileRanges = 8;

// 1, 2 or 5 times a power of ten, at least `value`.
double nice_at_least(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// Nearest rank: the smallest value that at least `share` of all are not above.
double quantile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

// The largest value that is still near the body.
double highest_near(const std::vector<double>& sorted, double quartile_range) {
  if (quartile_range <= 0) return sorted.back();
  const double far = quantile(sorted, 0.75) + kFarInQuartileRanges * quartile_range;
  return *std::prev(std::ranges::upper_bound(sorted, far));
}

// So many in a row make an entry that there are at most `most`.
std::size_t entries_joined(std::size_t count, std::size_t most) {
  return std::max<std::size_t>(1, (count + most - 1) / most);
}

// Nine decimals are enough to see, and shorter in a page.
double nanoseconds(double seconds) {
  return std::isfinite(seconds) ? std::round(seconds * 1e9) / 1e9 : seconds;
}

}  // namespace

RunProfile run_profile(const Json& json, const std::string& origin, std::size_t most_instructions) {
  RunProfile profile;
  fields::read_all(ops_reader(json, origin, kProfileFormat), profile);
  std::ranges::stable_sort(profile.instructions, std::greater(), &ProfiledInstruction::seconds);
  if (profile.instructions.size() > most_instructions) profile.instructions.resize(most_instructions);
  return profile;
}

StepTimes step_times(std::span<const double> step_seconds, std::int64_t warmup, std::size_t most_entries) {
  StepTimes times;
  times.iterations = static_cast<std::int64_t>(step_seconds.size());
  times.warmup = warmup;
  const std::size_t per_entry = entries_joined(step_seconds.size(), most_entries);
  times.per_entry = static_cast<std::int64_t>(per_entry);
  for (std::size_t begin = 0; begin < step_seconds.size(); begin += per_entry) {
    const auto entry = step_seconds.subspan(begin, std::min(per_entry, step_seconds.size() - begin));
    times.min_seconds.push_back(nanoseconds(std::ranges::min(entry)));
    times.median_seconds.push_back(nanoseconds(median({entry.begin(), entry.end()})));
    times.max_seconds.push_back(nanoseconds(std::ranges::max(entry)));
  }
  return times;
}

StepHistogram step_histogram(std::span<const double> step_seconds) {
  StepHistogram histogram;
  std::vector<double> sorted;
  std::ranges::copy_if(step_seconds, std::back_inserter(sorted),
                       [](double seconds) { return std::isfinite(seconds) && seconds > 0; });
  if (sorted.empty()) return histogram;
  std::ranges::sort(sorted);
  histogram.median_seconds = median(sorted);
  histogram.min_seconds = sorted.front();
  histogram.max_seconds = sorted.back();
  if (sorted.size() >= kLeastForPercentiles) {
    histogram.p1_seconds = quantile(sorted, 0.01);
    histogram.p99_seconds = quantile(sorted, 0.99);
  }

  const double quartile_range = quantile(sorted, 0.75) - quantile(sorted, 0.25);
  const double high = highest_near(sorted, quartile_range);
  const double range = high - sorted.front();
  // A thousandth of the median where all steps are alike: bins need some width.
  const double wanted = std::max({2 * quartile_range / std::cbrt(static_cast<double>(sorted.size())),
                                  range / static_cast<double>(kMostBins - 2), sorted.front() * 1e-3});
  const double width = nice_at_least(wanted);
  const double low_bin = std::floor(sorted.front() / width * (1 + 1e-12));
  const auto bins = static_cast<std::size_t>(std::floor(high / width * (1 + 1e-12)) - low_bin) + 1;
  histogram.width_seconds = width;
  histogram.low_seconds = low_bin * width;
  histogram.counts.assign(bins, 0);
  for (const double seconds : sorted) {
    const double bin = std::floor(seconds / width * (1 + 1e-12)) - low_bin;
    ++(bin < static_cast<double>(bins) ? histogram.counts[static_cast<std::size_t>(bin)] : histogram.above);
  }
  return histogram;
}

}  // namespace plumb
