// Step times of a run, small enough for a page: a time line and a histogram.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plumb {

// `per_entry` iterations in a row make one entry; 1 unless the run is long.
struct StepTimes {
  std::int64_t iterations = 0, warmup = 0, per_entry = 1;
  std::vector<double> min_seconds, median_seconds, max_seconds;
};

// Bin i: low + i * width up to (i + 1) * width seconds. Steps far above the rest don't stretch the bins, they
// are counted in `above`.
struct StepHistogram {
  double low_seconds = 0, width_seconds = 0;
  std::vector<std::int64_t> counts;
  std::int64_t above = 0;
  double median_seconds = 0, min_seconds = 0, max_seconds = 0;  // of all
  // First and 99th percentile, nearest rank; nothing for fewer than 100 steps, of which they would be
  // smallest and largest.
  std::optional<double> p1_seconds, p99_seconds;
};

StepTimes step_times(std::span<const double> step_seconds, std::int64_t warmup,
                     std::size_t most_entries = 500);

// Widths are 1, 2 or 5 times a power of ten, near Freedman and Diaconis' rule (2 IQR / cbrt(n)); 60 bins at
// most. `step_seconds`: of the window; times that aren't positive are not counted. Empty counts for none.
StepHistogram step_histogram(std::span<const double> step_seconds);

}  // namespace plumb
