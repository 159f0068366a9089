#include "results/statistics/stalls.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr double kStallFactor = 5;
constexpr std::size_t kLeastStepsForStalls = 3;
// Shorter interruptions that cost less happen to every long run.
constexpr double kLeastStallCost = 0.01, kLeastStallSeconds = 1;

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

std::string divergence_text(double first, double last) {
  constexpr double kLeastGrowth = 10;
  if (!std::isfinite(last)) return fmt::format("the loss became {}: training diverges", last);
  if (!(last > kLeastGrowth * std::max(first, 1.0))) return "";
  return fmt::format("the loss grew from {:.5g} to {:.5g}: training diverges", first, last);
}

}  // namespace plumb
