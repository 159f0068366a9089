// NVIDIA's TensorFlow 1 container, from the lines' stamps; results/dialects/ngc_tf.h shows a line. Published
// script: DLPerf c89430b, NVIDIADeepLearningExamples/TensorFlow/Classification/ConvNets/resnet50v1.5/
// extract_tensorflow_logs_time.py. The last warm-up iteration has no line, so the time is that of one
// iteration fewer, from the end of iteration warmup+1 on.
#include "base/text.h"
#include "results/dialects/dialect.h"
#include "results/dialects/ngc_tf.h"
#include "results/dialects/stamps.h"

namespace plumb {
namespace {

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_ngc_tf(line)) return std::nullopt;
  return reading_of_stamp(ngc_tf_step(line), find_stamp(line, kMicroseconds),
                          "has no iteration of the form '(0, 20)'",
                          "has no stamp of the form '2021-03-23 11:48:38.824370'");
}

StampedLines lines_in(const Window& window) {
  return {.begin = window.warmup - kNgcTfUnlogged + 1,
          .end = window.iterations - kNgcTfUnlogged,
          .iterations = window.iterations - window.warmup - 1};
}

double speed(const LogSeries& series, const Window& window, const RunSize& size) {
  const StampedLines lines = lines_in(window);
  return speed_between(series.values[static_cast<std::size_t>(lines.begin - 1)], series.values.back(),
                       lines.iterations, size.images_per_step);
}

PublishedFigure published(LineReader& lines, const Window& window, const RunSize& size) {
  return published_between(lines, is_of_ngc_tf, lines_in(window), kMicroseconds, size.images_per_step);
}

std::string window_of(const Window& window) {
  return fmt::format("iterations {} to {}", window.warmup + 2, window.iterations);
}

}  // namespace

const Dialect kNgcTfTime{.name = "ngc_tf_time",
                         .framework = "NGC TensorFlow",
                         .source = "NVIDIA's TensorFlow 1, from the lines' wall stamps",
                         .lowest_warmup = kNgcTfUnlogged,
                         .lowest_first_index = kNgcTfUnlogged,
                         .highest_first_index = kNgcTfUnlogged + 1,
                         .values = ValueKind::stamp,
                         .shares_lines_with_another = true,
                         .rounding = Rounding::python_averages,
                         .read_line = read_line,
                         .indices_wanted = ngc_tf_indices_wanted,
                         .speed = speed,
                         .published = published,
                         .window_text = window_of};

}  // namespace plumb
