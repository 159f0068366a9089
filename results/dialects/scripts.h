// What several published scripts have in common.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "results/dialects/dialect.h"
#include "results/dialects/tokens.h"
#include "results/statistics/statistics.h"

namespace plumb {

// Scripts that pass over iterations 0 to 5, a slow start, and count lines from there.
inline constexpr std::int64_t kFirstCounted = 6;  // iteration of the line that is counted as the first

// See Dialect::indices_wanted.
inline std::int64_t indices_wanted_after_five(const Window& window, std::int64_t first_index) {
  return window.iterations + kFirstCounted - first_index;
}

// "lines 20 to 120 after iteration 5"
inline std::string lines_after_five(std::int64_t from, std::int64_t to) {
  return fmt::format("lines {} to {} after iteration {}", from, to, kFirstCounted - 1);
}

// See Dialect::window_text.
inline std::string window_after_five(const Window& window) {
  return lines_after_five(window.warmup + 1, window.iterations);
}

// See Dialect::speed: the mean of the window's lines.
inline double mean_speed(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  return mean(after_warmup(series, window));
}

}  // namespace plumb
