// A speed that falls or rises for good: a cache that ran out, a clock that was lowered.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace plumb {

struct SpeedChange {
  std::size_t place = 0;         // the first step of the new speed
  double before = 0, after = 0;  // median seconds of a step
};

// Nothing if the medians on both sides of the best cut are within 30 %, or if a side is short or no steadier
// than the change.
std::optional<SpeedChange> find_speed_change(std::span<const double> step_seconds);

}  // namespace plumb
