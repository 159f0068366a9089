#include "results/formats/speed_change.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::size_t kLeastSteps = 4;  // on each side
constexpr double kLeastChange = 1.3, kMostScatter = 0.1;

// Whether most steps are near their median.
bool is_steady(std::span<const double> seconds, double middle) {
  const auto far = std::ranges::count_if(
      seconds, [&](double value) { return std::abs(value - middle) > kMostScatter * middle; });
  return static_cast<std::size_t>(4 * far) <= seconds.size();
}

}  // namespace

std::optional<SpeedChange> find_speed_change(std::span<const double> step_seconds) {
  const std::size_t count = step_seconds.size();
  if (count < 2 * kLeastSteps) return std::nullopt;
  // Logarithms, so that a single stall weighs little; the cut leaves the least sum of squares.
  std::vector<double> sums{0};
  for (const double seconds : step_seconds) sums.push_back(sums.back() + std::log(std::max(seconds, 1e-12)));
  std::size_t best = 0;
  double most = 0;
  for (std::size_t cut = kLeastSteps; cut + kLeastSteps <= count; ++cut) {
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

}  // namespace plumb
