// TensorFlow 2's official ResNet, from the lines' stamps; results/dialects/tf2.h shows a line. Published
// script: DLPerf c89430b, TensorFlow/resnet50v1.5/extract_tensorflow_logs_time.py. It reads the time of the
// day alone, so a run over midnight gets a speed below 0; here the day before it counts, too.
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "results/dialects/dialect.h"
#include "results/dialects/stamps.h"
#include "results/dialects/tf2.h"
#include "results/dialects/tokens.h"

namespace plumb {
namespace {

constexpr double kDay = 86400e6;  // microseconds

// "I0801 10:00:00.594147": month, day, time. The value orders stamps within a year; their difference is right
// up to whole days (a February has 28 or 29).
Stamp stamp_of(std::string_view line) {
  Stamp stamp = find_stamp(line, kTimeOfDay);
  if (stamp.error != StampError::none) return stamp;
  const std::size_t end = line.find(' ');
  const bool has_day = end == 5 && digits_at(line, 1) == 4;
  const std::optional<std::int64_t> month = has_day ? python_int(line.substr(1, 2)) : std::nullopt;
  const std::optional<std::int64_t> day = has_day ? python_int(line.substr(3, 2)) : std::nullopt;
  if (!month || !day) return {StampError::no_stamp, 0};
  if (*month < 1 || *month > 12 || *day < 1 || *day > 31) return {StampError::no_date, 0};
  stamp.microseconds += (*month * 31 + *day) * static_cast<std::int64_t>(kDay);
  return stamp;
}

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_tf2(line)) return std::nullopt;
  return reading_of_stamp(tf2_last_step(line), stamp_of(line), "has no 'between steps N and M'",
                          "has no stamp of the form 'I0801 10:00:00.594147'");
}

std::span<const double> in_window(const LogSeries& series, const Window& window) {
  const std::int64_t before = window.warmup / series.index_step - 1;  // the line that ends the warm-up
  return std::span(series.values).subspan(static_cast<std::size_t>(before));
}

// From line to line less than a day passes.
double microseconds_in(std::span<const double> stamps) {
  double sum = 0;
  for (std::size_t i = 1; i < stamps.size(); ++i)
    sum += std::fmod(stamps[i] - stamps[i - 1] + 400 * kDay, kDay);
  return sum;
}

double speed(const LogSeries& series, const Window& window, const RunSize& size) {
  const std::int64_t end = window.iterations / series.index_step * series.index_step;
  return speed_between(0, microseconds_in(in_window(series, window)), end - window.warmup,
                       size.images_per_step);
}

PublishedFigure published(LineReader& lines, const Window& window, const RunSize& size) {
  const Tf2Slice slice = tf2_slice(window);
  return published_between(
      lines, is_of_tf2,
      {.begin = slice.from, .end = slice.to, .iterations = window.iterations - window.warmup}, kTimeOfDay,
      size.images_per_step);
}

std::string caveat(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  const auto stamps = in_window(series, window);
  const auto day_of = [](double stamp) { return std::floor(stamp / kDay); };
  std::string text = tf2_caveat(series, window);
  if (day_of(stamps.front()) != day_of(stamps.back()))
    append_part(
        text,
        "a run goes over midnight, where the published script, which reads no date, finds a speed below 0",
        ", and ");
  return text;
}

}  // namespace

const Dialect kTf2Time{.name = "tf2_time",
                       .framework = "TensorFlow 2.x",
                       .source = "TensorFlow 2, from the lines' wall stamps",
                       .default_window = {.iterations = 600, .warmup = 100},
                       .step_is_first_index = true,
                       .values = ValueKind::stamp_without_year,
                       .shares_lines_with_another = true,
                       .rounding = Rounding::python_averages,
                       .read_line = read_line,
                       .speed = speed,
                       .published = published,
                       .caveat = caveat};

}  // namespace plumb
