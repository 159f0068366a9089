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

// The values of all lines that a script counts. Throws Error(bad_data) with `no_value` if value(line) is
// nothing.
template <typename Value>
std::vector<double> published_values(LineReader& lines, bool (*counts)(std::string_view line), Value value,
                                     const char* no_value) {
  std::vector<double> values;
  while (const std::optional<std::string_view> line = lines.next()) {
    if (!counts(*line)) continue;
    const std::optional<double> found = value(*line);
    if (!found) throw Error(ExitCode::bad_data, no_value);
    values.push_back(*found);
  }
  return values;
}

// The mean of values[from:to], as Python slices.
inline PublishedFigure mean_of_slice(std::span<const double> values, std::int64_t from, std::int64_t to) {
  const std::int64_t end = std::clamp<std::int64_t>(to, 0, std::ssize(values));
  const auto begin = static_cast<std::size_t>(std::clamp<std::int64_t>(from, 0, end));
  return {round_numpy(mean(values.first(static_cast<std::size_t>(end)).subspan(begin)), 2)};
}

}  // namespace plumb
