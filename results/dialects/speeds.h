// Log lines that give a speed, as the published scripts average them.
#pragma once

#include "base/error.h"
#include "results/dialects/dialect.h"
#include "results/statistics/statistics.h"

namespace plumb {

// See Dialect::speed: the mean of the window's lines.
inline double mean_speed(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  return mean(after_warmup(series, window));
}

// The mean of the lines [from, to) of those that the script counts. It reads all of them: throws
// Error(bad_data) with `no_value` if value(line) is nothing.
template <typename Value>
PublishedFigure published_mean(LineReader& lines, std::int64_t from, std::int64_t to,
                               bool (*counts)(std::string_view line), Value value, const char* no_value) {
  std::vector<double> in_window;
  for (std::int64_t count = 0; const std::optional<std::string_view> line = lines.next();) {
    if (!counts(*line)) continue;
    const std::optional<double> images_per_second = value(*line);
    if (!images_per_second) throw Error(ExitCode::bad_data, no_value);
    if (count >= from && count < to) in_window.push_back(*images_per_second);
    ++count;
  }
  return {round_numpy(mean(in_window), 2)};
}

}  // namespace plumb
