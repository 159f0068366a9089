// Paddle's wall stamps: "2025-01-02 23:59:53,657-INFO: [Pass 0, train batch 7] … elapse 0.3628 sec"; the
// speed comes from the stamps of the last warm-up iteration and of the last iteration. Published script:
// DLPerf c89430b, PaddlePaddle/resnet50v1.5/extract_paddle_logs_time.py.
#include <string>

#include "base/error.h"
#include "results/dialects/dialect.h"
#include "results/dialects/stamps.h"
#include "results/dialects/tokens.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (line.find("elapse") == std::string_view::npos) return std::nullopt;
  return reading_of_stamp(number_between(line, "train batch ", "]"), find_stamp(line),
                          "has 'elapse' but no 'train batch N]'",
                          "has no stamp of the form '2025-01-02 23:59:53,657'");
}

double speed(const LogSeries& series, const Window& window, const RunSize& size) {
  return speed_between(series.values[static_cast<std::size_t>(window.warmup - 1)], series.values.back(),
                       window.iterations - window.warmup, size.images_per_step);
}

PublishedFigure published(LineReader& lines, const Window& window, const RunSize& size) {
  const std::string begin_mark = fmt::format("train batch {}]", window.warmup - 1);
  const std::string end_mark = fmt::format("train batch {}]", window.iterations - 1);
  std::string begin_line;
  while (const std::optional<std::string_view> line = lines.next()) {
    if (line->find("elapse") == std::string_view::npos) continue;
    if (line->find(begin_mark) != std::string_view::npos) {
      begin_line = *line;
      if (find_stamp(begin_line).error == StampError::no_stamp)
        throw Error(ExitCode::bad_data, "no stamp in the line of {}", begin_mark);
    } else if (line->find(end_mark) != std::string_view::npos) {
      const double end = published_stamp(*line), begin = published_stamp(begin_line);
      if (end == begin) throw Error(ExitCode::bad_data, "no time passes in the window");
      const std::int64_t iterations = window.iterations - window.warmup;
      return {round_decimal(speed_between(begin, end, iterations, size.images_per_step), 2)};
    }
  }
  return {0, true};
}

}  // namespace

const Dialect kPaddleTime{.name = "paddle_time",
                          .framework = "PaddlePaddle",
                          .source = "Paddle and Plumbline, from the lines' wall stamps",
                          .values = ValueKind::stamp,
                          .shares_lines_with_another = true,
                          .rounding = Rounding::python_averages,
                          .read_line = read_line,
                          .speed = speed,
                          .published = published,
                          .format = {.line = own_line}};

}  // namespace plumb
