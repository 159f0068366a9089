// Paddle: "2025-01-02 23:59:53,657-INFO: [Pass 0, train batch 7] … elapse 0.3628 sec". Published scripts:
// DLPerf c89430b, PaddlePaddle/resnet50v1.5/; extract_paddle_logs.py takes each iteration's time,
// extract_paddle_logs_time.py the stamps of the last warm-up iteration and of the last iteration.
#include "results/dialects/scripts.h"
#include "results/dialects/stamps.h"

namespace plumb {
namespace {
namespace paddle {

constexpr int kSpeedDecimals = 4;  // the script rounds each iteration's speed to these

bool is_of_dialect(std::string_view line) {
  return line.find("elapse") != std::string_view::npos;
}

std::optional<LineReading> read_speed(std::string_view line, const RunSize& size) {
  if (!is_of_dialect(line)) return std::nullopt;
  LineReading reading = reading_of(
      number_between(line, "train batch ", "]"), elapse_seconds(line), "has 'elapse' but no 'train batch N]'",
      "has no time of the form 'elapse 0.3208 sec'", "has a time that is not a positive number of seconds");
  if (reading.problem.empty())
    reading.value = round_decimal(size.images_per_step / reading.value, kSpeedDecimals);
  return reading;
}

std::optional<LineReading> read_stamp(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_dialect(line)) return std::nullopt;
  return reading_of_stamp(number_between(line, "train batch ", "]"), find_stamp(line),
                          "has 'elapse' but no 'train batch N]'",
                          "has no stamp of the form '2025-01-02 23:59:53,657'");
}

double speed_by_stamps(const LogSeries& series, const Window& window, const RunSize& size) {
  return speed_between(series.values[static_cast<std::size_t>(window.warmup - 1)], series.values.back(),
                       window.iterations - window.warmup, size.images_per_step);
}

std::string speed_caveat(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  if (series.lines <= window.iterations) return "";
  return fmt::format("a log has {} iterations, of which {} to {} count; --warmup and --iters choose others",
                     series.lines, window.warmup + 1, window.iterations);
}

}  // namespace paddle
}  // namespace

const Dialect kPaddleSpeed{.name = "paddle_speed",
                           .framework = "PaddlePaddle",
                           .source = "Paddle and Plumbline, from each iteration's elapse",
                           .model = "resnet50",
                           .read_line = paddle::read_speed,
                           .speed = mean_speed,
                           .caveat = paddle::speed_caveat,
                           .format = {.line = own_line}};

const Dialect kPaddleTime{.name = "paddle_time",
                          .framework = "PaddlePaddle",
                          .source = "Paddle and Plumbline, from the lines' wall stamps",
                          .model = "resnet50",
                          .values = ValueKind::stamp,
                          .shares_lines_with_another = true,
                          .rounding = Rounding::python_averages,
                          .read_line = paddle::read_stamp,
                          .speed = paddle::speed_by_stamps,
                          .format = {.line = own_line}};

}  // namespace plumb
