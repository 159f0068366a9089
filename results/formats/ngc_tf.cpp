// NVIDIA's TensorFlow 1 container. A line of rank 0 for every iteration from the 21st on: "DLL 2021-03-23
// 11:48:38.824370 - (0, 20) imgs_per_sec : 2879.142978189404  cross_entropy : 7.2 …". Published scripts:
// DLPerf c89430b, NVIDIADeepLearningExamples/TensorFlow/Classification/ConvNets/resnet50v1.5/;
// extract_tensorflow_logs.py takes every iteration's imgs_per_sec, extract_tensorflow_logs_time.py the lines'
// stamps: the last warm-up iteration has no line, so the time is that of one iteration fewer, from the end of
// iteration warmup+1 on. Lines: DeepLearningExamples' utils/hooks/training_hooks.py.
#include "results/formats/scripts.h"
#include "results/formats/stamps.h"

namespace plumb {
namespace {
namespace ngc_tf {

constexpr std::int64_t kUnlogged = 20;  // iterations before the first line

bool is_of_dialect(std::string_view line) {
  return line.find(" imgs_per_sec ") != std::string_view::npos;
}

// 20 for "- (0, 20) " and "Iteration: 20 ".
std::optional<std::int64_t> iteration_of(std::string_view line) {
  if (const auto iteration = number_between(line, "Iteration: ", " ")) return iteration;
  const auto rest = text_behind(line, " - (");
  return rest ? number_between(*rest, ", ", ")") : std::nullopt;
}

// ` imgs_per_sec \: \d+.\d+ `, rounded as the script does.
std::optional<double> images_per_second_of(std::string_view line) {
  const std::optional<double> value = decimal_between(line, " imgs_per_sec : ", " ", Point::any);
  return value ? std::optional(round_decimal(*value, 2)) : std::nullopt;
}

std::optional<LineReading> read_speed(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_dialect(line)) return std::nullopt;
  return reading_of(iteration_of(line), images_per_second_of(line), "has no iteration of the form '(0, 20)'",
                    "has no speed of the form 'imgs_per_sec : 402.33 '");
}

std::optional<LineReading> read_stamp(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_dialect(line)) return std::nullopt;
  return reading_of_stamp(iteration_of(line), find_stamp(line, kMicroseconds),
                          "has no iteration of the form '(0, 20)'",
                          "has no stamp of the form '2021-03-23 11:48:38.824370'");
}

std::int64_t indices_wanted(const Window& window, std::int64_t /*first_index*/) {
  return window.iterations - kUnlogged;
}

double speed_of_lines(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  return mean(std::span(series.values).subspan(static_cast<std::size_t>(window.warmup - kUnlogged)));
}

// The first line in the window begins at the end of its iteration.
double speed_by_stamps(const LogSeries& series, const Window& window, const RunSize& size) {
  return speed_between(series.values[static_cast<std::size_t>(window.warmup - kUnlogged)],
                       series.values.back(), window.iterations - window.warmup - 1, size.images_per_step);
}

std::string time_window(const Window& window) {
  return fmt::format("iterations {} to {}", window.warmup + 2, window.iterations);
}

std::string line_of(const LoggedInterval& interval, const RunSize& /*size*/) {
  return fmt::format(
      "DLL {} - (0, {}) imgs_per_sec : {:.6f}  cross_entropy : {:.6f}  learning_rate : {:.6f} ",
      interval.fine_stamp, interval.first, interval.images_per_second, interval.loss, interval.learning_rate);
}

}  // namespace ngc_tf
}  // namespace

const Dialect kNgcTfSpeed{.name = "ngc_tf_speed",
                          .framework = "NGC TensorFlow",
                          .source = "NVIDIA's TensorFlow 1, from each iteration's imgs_per_sec",
                          .model = "resnet50",
                          .lowest_warmup = ngc_tf::kUnlogged,
                          .lowest_first_index = ngc_tf::kUnlogged,
                          .highest_first_index = ngc_tf::kUnlogged + 1,
                          .read_line = ngc_tf::read_speed,
                          .indices_wanted = ngc_tf::indices_wanted,
                          .speed = ngc_tf::speed_of_lines,
                          .format = {.first_iteration = ngc_tf::kUnlogged, .line = ngc_tf::line_of}};

const Dialect kNgcTfTime{.name = "ngc_tf_time",
                         .framework = "NGC TensorFlow",
                         .source = "NVIDIA's TensorFlow 1, from the lines' wall stamps",
                         .model = "resnet50",
                         .lowest_warmup = ngc_tf::kUnlogged,
                         .lowest_first_index = ngc_tf::kUnlogged,
                         .highest_first_index = ngc_tf::kUnlogged + 1,
                         .values = ValueKind::stamp,
                         .shares_lines_with_another = true,
                         .rounding = Rounding::python_averages,
                         .read_line = ngc_tf::read_stamp,
                         .indices_wanted = ngc_tf::indices_wanted,
                         .speed = ngc_tf::speed_by_stamps,
                         .window_text = ngc_tf::time_window};

}  // namespace plumb
