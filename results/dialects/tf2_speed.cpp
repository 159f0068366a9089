// TensorFlow 2's official ResNet, from the examples/second of every 100 steps; results/dialects/tf2.h shows a
// line. Published script: DLPerf c89430b, TensorFlow/resnet50v1.5/extract_tensorflow_logs.py; lines: models
// v2.3.0, official/utils/misc/keras_utils.py.
#include <algorithm>

#include "base/error.h"
#include "results/dialects/speeds.h"
#include "results/dialects/tf2.h"
#include "results/dialects/tokens.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::string_view kMark = "TimeHistory";

std::optional<double> images_per_second_of(std::string_view line) {
  return number_with_any_point(line, ", ", " examples/second ");
}

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_tf2(line)) return std::nullopt;
  return reading_of_speed(tf2_last_step(line), images_per_second_of(line), "has no 'between steps N and M'",
                          "has no speed of the form ', 321.77 examples/second'");
}

PublishedFigure published(LineReader& lines, const Window& window, const RunSize& /*size*/) {
  const Tf2Slice slice = tf2_slice(window);
  return published_mean(lines, slice.from, slice.to, is_of_tf2, images_per_second_of,
                        "no number in ', … examples/second '");
}

std::string caveat(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  return tf2_caveat(series, window);
}

// "0102 23:59:53.657123" of "2025-01-02 23:59:53.657123".
std::string line_of(const LoggedInterval& interval, const RunSize& size) {
  const std::string_view stamp = interval.fine_stamp;
  const double images = size.images_per_step * static_cast<double>(interval.last + 1 - interval.first);
  return fmt::format(
      "I{}{} 1 keras_utils.py:145] TimeHistory: {:.2f} seconds, {:.2f} examples/second between steps {} and "
      "{}",
      stamp.substr(5, 2), stamp.substr(8), images / interval.images_per_second, interval.images_per_second,
      interval.first, interval.last + 1);
}

}  // namespace

bool is_of_tf2(std::string_view line) {
  return line.find(kMark) != std::string_view::npos;
}

std::optional<std::int64_t> tf2_last_step(std::string_view line) {
  const std::size_t at = line.find("between steps ");
  return at == std::string_view::npos ? std::nullopt : number_between(line.substr(at), " and ", "");
}

Tf2Slice tf2_slice(const Window& window) {
  if (window.warmup % kTf2StepsPerLine != 0)
    throw Error(ExitCode::bad_data, "--warmup is no multiple of {}", kTf2StepsPerLine);
  return {std::max<std::int64_t>(1, window.warmup / kTf2StepsPerLine), window.iterations / kTf2StepsPerLine};
}

std::string tf2_caveat(const LogSeries& series, const Window& window) {
  if (series.index_step == kTf2StepsPerLine) return "";
  return fmt::format(
      "a line is of {} steps; the published script takes it for {}, so its window ends at step {}",
      series.index_step, kTf2StepsPerLine, window.iterations / kTf2StepsPerLine * series.index_step);
}

const Dialect kTf2Speed{.name = "tf2_speed",
                        .framework = "TensorFlow 2.x",
                        .source = "TensorFlow 2, from the examples/second of every 100 steps",
                        .default_window = {.iterations = 600, .warmup = 100},
                        .step_is_first_index = true,
                        .read_line = read_line,
                        .speed = mean_speed,
                        .published = published,
                        .caveat = caveat,
                        .format = {.iterations_per_line = kTf2StepsPerLine, .line = line_of}};

}  // namespace plumb
