// NVIDIA's TensorFlow 1 container, from every iteration's imgs_per_sec; results/dialects/ngc_tf.h shows a
// line. Published script: DLPerf c89430b,
// NVIDIADeepLearningExamples/TensorFlow/Classification/ConvNets/resnet50v1.5/ extract_tensorflow_logs.py;
// lines: DeepLearningExamples' utils/hooks/training_hooks.py.

#include "base/error.h"
#include "results/dialects/ngc_tf.h"
#include "results/dialects/speeds.h"
#include "results/dialects/tokens.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::string_view kMark = " imgs_per_sec ";

// ` imgs_per_sec \: \d+.\d+ `, rounded as the script does.
std::optional<double> images_per_second_of(std::string_view line) {
  const std::optional<double> value = number_with_any_point(line, " imgs_per_sec : ", " ");
  return value ? std::optional(round_decimal(*value, 2)) : std::nullopt;
}

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_ngc_tf(line)) return std::nullopt;
  return reading_of_speed(ngc_tf_step(line), images_per_second_of(line),
                          "has no iteration of the form '(0, 20)'",
                          "has no speed of the form 'imgs_per_sec : 402.33 '");
}

double speed(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  return mean(std::span(series.values).subspan(static_cast<std::size_t>(window.warmup - kNgcTfUnlogged)));
}

PublishedFigure published(LineReader& lines, const Window& window, const RunSize& /*size*/) {
  return published_mean(lines, window.warmup - kNgcTfUnlogged, window.iterations - kNgcTfUnlogged,
                        is_of_ngc_tf, images_per_second_of, "no number in ' imgs_per_sec : … '");
}

std::string line_of(const LoggedInterval& interval, const RunSize& /*size*/) {
  return fmt::format(
      "DLL {} - (0, {}) imgs_per_sec : {:.6f}  cross_entropy : {:.6f}  learning_rate : {:.6f} ",
      interval.fine_stamp, interval.first, interval.images_per_second, interval.loss, interval.learning_rate);
}

}  // namespace

bool is_of_ngc_tf(std::string_view line) {
  return line.find(kMark) != std::string_view::npos;
}

std::optional<std::int64_t> ngc_tf_step(std::string_view line) {
  if (const auto step = number_between(line, "Iteration: ", " ")) return step;
  const std::size_t at = line.find(" - (");
  return at == std::string_view::npos ? std::nullopt : number_between(line.substr(at), ", ", ")");
}

std::int64_t ngc_tf_indices_wanted(const Window& window, std::int64_t /*first_index*/) {
  return window.iterations - kNgcTfUnlogged;
}

const Dialect kNgcTfSpeed{.name = "ngc_tf_speed",
                          .framework = "NGC TensorFlow",
                          .source = "NVIDIA's TensorFlow 1, from each iteration's imgs_per_sec",
                          .lowest_warmup = kNgcTfUnlogged,
                          .lowest_first_index = kNgcTfUnlogged,
                          .highest_first_index = kNgcTfUnlogged + 1,
                          .read_line = read_line,
                          .indices_wanted = ngc_tf_indices_wanted,
                          .speed = speed,
                          .published = published,
                          .format = {.first_iteration = kNgcTfUnlogged, .line = line_of}};

}  // namespace plumb
