// Steps that took many times as long as the others: a link that was down, a suspended process, a disk that
// hung. And losses that show that training diverged: times are right, but nobody trains like that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace plumb {

// A step stalls if it takes over 5 times the median.
struct Stalls {
  std::size_t count = 0;
  std::size_t longest = 0;  // its place among the steps
  double longest_seconds = 0, median_seconds = 0;
};

// None among fewer than 3 steps, and none if together they cost under 1 % of all time and under a second
// each.
Stalls find_stalls(std::span<const double> step_seconds);

// "stalled: iteration 57 took 15.2 s, 50 times the median of 0.301 s", "stalled 3 times: iteration 57 … at
// most". `iteration`: the longest one's; there is at least one stall.
std::string stall_text(const Stalls& stalls, std::int64_t iteration);

// A speed that falls or rises for good: a cache that ran out, a clock that was lowered.
struct SpeedChange {
  std::size_t place = 0;         // the first step of the new speed
  double before = 0, after = 0;  // median seconds of a step
};

// Nothing if the medians on both sides of the best cut are within 30 %, or if a side is short or no steadier
// than the change.
std::optional<SpeedChange> find_speed_change(std::span<const double> step_seconds);

// "the loss grew from 6.91 to 512: training diverges", "the loss became nan: …"; empty for losses that don't.
// Losses of random labels stay near their first; those of a run that diverges leave it by magnitudes.
std::string divergence_text(double first, double last);

}  // namespace plumb
