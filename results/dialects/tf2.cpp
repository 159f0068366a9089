// TensorFlow 2's official ResNet. A line for every 100 steps (--log_steps), in them "I0801 10:00:00.594147
// 1403 keras_utils.py:145] TimeHistory: 39.78 seconds, 321.77 examples/second between steps 0 and 100", the
// speed that of all replicas. Published scripts: DLPerf c89430b, TensorFlow/resnet50v1.5/;
// extract_tensorflow_logs.py takes the examples/second, extract_tensorflow_logs_time.py the lines' stamps: it
// reads the time of the day alone, so a run over midnight gets a speed below 0; here the day before it
// counts, too. Lines: models v2.3.0, official/utils/misc/keras_utils.py.
#include <cmath>

#include "results/dialects/scripts.h"
#include "results/dialects/stamps.h"

namespace plumb {
namespace {
namespace tf2 {

constexpr std::int64_t kStepsPerLine = 100;  // by the published scripts, whatever the lines say
constexpr double kDay = 86400e6;             // microseconds

bool is_of_dialect(std::string_view line) {
  return line.find("TimeHistory") != std::string_view::npos;
}

// 100 for "between steps 0 and 100".
std::optional<std::int64_t> last_step_of(std::string_view line) {
  const auto rest = text_behind(line, "between steps ");
  return rest ? number_between(*rest, " and ", "") : std::nullopt;
}

std::optional<double> images_per_second_of(std::string_view line) {
  return decimal_between(line, ", ", " examples/second ", Point::any);
}

std::optional<LineReading> read_speed(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_dialect(line)) return std::nullopt;
  return reading_of(last_step_of(line), images_per_second_of(line), "has no 'between steps N and M'",
                    "has no speed of the form ', 321.77 examples/second'");
}

// "I0801 10:00:00.594147": month, day, time. The value orders stamps within a year; their difference is right
// up to whole days (a February has 28 or 29).
Stamp stamp_of(std::string_view line) {
  Stamp stamp = find_stamp(line, kTimeOfDay);
  if (stamp.error != StampError::none) return stamp;
  const bool has_day = line.find(' ') == 5 && digits_at(line, 1) == 4;
  const std::optional<std::int64_t> month = has_day ? python_int(line.substr(1, 2)) : std::nullopt;
  const std::optional<std::int64_t> day = has_day ? python_int(line.substr(3, 2)) : std::nullopt;
  if (!month || !day) return {StampError::no_stamp, 0};
  if (*month < 1 || *month > 12 || *day < 1 || *day > 31) return {StampError::no_date, 0};
  stamp.microseconds += (*month * 31 + *day) * static_cast<std::int64_t>(kDay);
  return stamp;
}

std::optional<LineReading> read_stamp(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_dialect(line)) return std::nullopt;
  return reading_of_stamp(last_step_of(line), stamp_of(line), "has no 'between steps N and M'",
                          "has no stamp of the form 'I0801 10:00:00.594147'");
}

// The stamps from the line on that ends the warm-up.
std::span<const double> in_window(const LogSeries& series, const Window& window) {
  const std::int64_t before = window.warmup / series.index_step - 1;
  return std::span(series.values).subspan(static_cast<std::size_t>(before));
}

// From line to line less than a day passes.
double microseconds_in(std::span<const double> stamps) {
  double sum = 0;
  for (std::size_t i = 1; i < stamps.size(); ++i)
    sum += std::fmod(stamps[i] - stamps[i - 1] + 400 * kDay, kDay);
  return sum;
}

double speed_by_stamps(const LogSeries& series, const Window& window, const RunSize& size) {
  const std::int64_t end = window.iterations / series.index_step * series.index_step;
  return speed_between(0, microseconds_in(in_window(series, window)), end - window.warmup,
                       size.images_per_step);
}

// If a line isn't of as many steps as the scripts think.
std::string speed_caveat(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  if (series.index_step == kStepsPerLine) return "";
  return fmt::format(
      "a line is of {} steps; the published script takes it for {}, so its window ends at step {}",
      series.index_step, kStepsPerLine, window.iterations / kStepsPerLine * series.index_step);
}

std::string time_caveat(const LogSeries& series, const Window& window, const RunSize& size) {
  const auto stamps = in_window(series, window);
  std::string text = speed_caveat(series, window, size);
  if (std::floor(stamps.front() / kDay) != std::floor(stamps.back() / kDay))
    append_part(
        text,
        "a run goes over midnight, where the published script, which reads no date, finds a speed below 0",
        ", and ");
  return text;
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

}  // namespace tf2
}  // namespace

const Dialect kTf2Speed{.name = "tf2_speed",
                        .framework = "TensorFlow 2.x",
                        .source = "TensorFlow 2, from the examples/second of every 100 steps",
                        .model = "resnet50",
                        .default_window = {.iterations = 600, .warmup = 100},
                        .step_is_first_index = true,
                        .read_line = tf2::read_speed,
                        .speed = mean_speed,
                        .caveat = tf2::speed_caveat,
                        .format = {.iterations_per_line = tf2::kStepsPerLine, .line = tf2::line_of}};

const Dialect kTf2Time{.name = "tf2_time",
                       .framework = "TensorFlow 2.x",
                       .source = "TensorFlow 2, from the lines' wall stamps",
                       .model = "resnet50",
                       .default_window = {.iterations = 600, .warmup = 100},
                       .step_is_first_index = true,
                       .values = ValueKind::stamp_without_year,
                       .shares_lines_with_another = true,
                       .rounding = Rounding::python_averages,
                       .read_line = tf2::read_stamp,
                       .speed = tf2::speed_by_stamps,
                       .caveat = tf2::time_caveat};

}  // namespace plumb
