// Paddle's per-iteration time: "… train batch 7] … elapse 0.3628 sec".
// Published script: DLPerf c89430b, PaddlePaddle/resnet50v1.5/extract_paddle_logs.py.
#include "base/error.h"
#include "results/dialects/speeds.h"
#include "results/dialects/tokens.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr int kSpeedDecimals = 4;  // the script rounds each iteration's speed to these

std::optional<LineReading> read_line(std::string_view line, const RunSize& size) {
  if (line.find("elapse") == std::string_view::npos) return std::nullopt;
  LineReading reading;
  const std::optional<std::int64_t> index = number_between(line, "train batch ", "]");
  const std::optional<double> seconds = elapse_seconds(line);
  if (!index) {
    reading.problem = "has 'elapse' but no 'train batch N]'";
  } else if (!seconds) {
    reading.problem = "has no time of the form 'elapse 0.3208 sec'";
  } else if (!(*seconds > 0) || size.images_per_step / *seconds <= 0) {  // 0, negative, NaN, infinite
    reading.problem = "has a time that is not a positive number of seconds";
  } else {
    reading.index = *index;
    reading.value = round_decimal(size.images_per_step / *seconds, kSpeedDecimals);
  }
  return reading;
}

std::string caveat(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  if (series.lines <= window.iterations) return "";
  return fmt::format("a log has {} iterations, of which {} to {} count; --warmup and --iters choose others",
                     series.lines, window.warmup + 1, window.iterations);
}

PublishedFigure published(LineReader& lines, const Window& window, const RunSize& size) {
  std::vector<double> in_window;
  for (std::int64_t count = 0; const std::optional<std::string_view> line = lines.next();) {
    if (line->find("elapse") == std::string_view::npos) continue;
    const std::optional<double> seconds = elapse_seconds(*line);
    if (!seconds) throw Error(ExitCode::bad_data, "no number in 'elapse … sec'");
    if (*seconds == 0) throw Error(ExitCode::bad_data, "elapse is 0");
    const double value = round_decimal(size.images_per_step / *seconds, kSpeedDecimals);
    if (count >= window.warmup && count < window.iterations) in_window.push_back(value);
    ++count;
  }
  return {round_numpy(mean(in_window), 2)};
}

}  // namespace

const Dialect kPaddleSpeed{.name = "paddle_speed",
                           .framework = "PaddlePaddle",
                           .source = "Paddle and Plumbline, from each iteration's elapse",
                           .read_line = read_line,
                           .speed = mean_speed,
                           .published = published,
                           .caveat = caveat,
                           .format = {.line = own_line}};

}  // namespace plumb
