#include "results/statistics/stalls.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr double kStallFactor = 5;
constexpr std::size_t kLeastStepsForStalls = 3;
// Shorter interruptions that cost less happen to every long run.
constexpr double kLeastStallCost = 0.01, kLeastStallSeconds = 1;

constexpr std::size_t kLeastStepsOfSpeed = 4;  // on each side of a change
constexpr double kLeastChange = 1.3, kMostScatter = 0.1;

// Whether most steps are near their median.
bool is_steady(std::span<const double> seconds, double middle) {
  const auto far = std::ranges::count_if(
      seconds, [&](double value) { return std::abs(value - middle) > kMostScatter * middle; });
  return static_cast<std::size_t>(4 * far) <= seconds.size();
}

}  // namespace

Stalls find_stalls(std::span<const double> step_seconds) {
  if (step_seconds.size() < kLeastStepsForStalls) return {};
  Stalls stalls{.median_seconds = median(step_seconds)};
  double total = 0, excess = 0;
  for (std::size_t i = 0; i < step_seconds.size(); ++i) {
    const double seconds = step_seconds[i];
    total += seconds;
    if (!(seconds > kStallFactor * stalls.median_seconds)) continue;
    ++stalls.count;
    excess += seconds - stalls.median_seconds;
    if (seconds <= stalls.longest_seconds) continue;
    stalls.longest = i;
    stalls.longest_seconds = seconds;
  }
  const bool matters = stalls.longest_seconds >= kLeastStallSeconds || excess >= kLeastStallCost * total;
  return matters ? stalls : Stalls{};
}

std::string stall_text(const Stalls& stalls, std::int64_t iteration) {
  const std::string longest = fmt::format(
      "iteration {} took {:.3g} s, {:.0f} times the median of {:.3g} s", iteration, stalls.longest_seconds,
      stalls.longest_seconds / stalls.median_seconds, stalls.median_seconds);
  if (stalls.count == 1) return "stalled: " + longest;
  return fmt::format("stalled {} times: {} at most", stalls.count, longest);
}

std::optional<SpeedChange> find_speed_change(std::span<const double> step_seconds) {
  const std::size_t count = step_seconds.size();
  if (count < 2 * kLeastStepsOfSpeed) return std::nullopt;
  // Logarithms, so that a single stall weighs little; the cut leaves the least sum of squares.
  std::vector<double> sums{0};
  for (const double seconds : step_seconds) sums.push_back(sums.back() + std::log(std::max(seconds, 1e-12)));
  std::size_t best = 0;
  double most = 0;
  for (std::size_t cut = kLeastStepsOfSpeed; cut + kLeastStepsOfSpeed <= count; ++cut) {
    const auto before = static_cast<double>(cut), after = static_cast<double>(count - cut);
    const double difference = sums[cut] / before - (sums[count] - sums[cut]) / after;
    const double explained = difference * difference * before * after;
    if (explained <= most) continue;
    most = explained;
    best = cut;
  }
  if (best == 0) return std::nullopt;
  const auto first = step_seconds.first(best), second = step_seconds.subspan(best);
  const SpeedChange change{best, median(first), median(second)};
  const double ratio = change.after / change.before;
  if (std::max(ratio, 1 / ratio) < kLeastChange) return std::nullopt;
  if (!is_steady(first, change.before) || !is_steady(second, change.after)) return std::nullopt;
  return change;
}

std::string divergence_text(double first, double last) {
  constexpr double kLeastGrowth = 10;
  if (!std::isfinite(last)) return fmt::format("the loss became {}: training diverges", last);
  if (!(last > kLeastGrowth * std::max(first, 1.0))) return "";
  return fmt::format("the loss grew from {:.5g} to {:.5g}: training diverges", first, last);
}

}  // namespace plumb
