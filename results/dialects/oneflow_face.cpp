// OneFlow's InsightFace, a line for every iteration, counted from 0: "train: iter 25, loss 45.2, throughput:
// 245.290". Published script: DLPerf c89430b, OneFlow/Recognition/insightface/extract_oneflow_logs_time.py;
// lines: oneflow_face 1705ae5b. The script passes over iterations 0 to 5, then counts lines, and takes the
// 20th to the 120th: iterations 25 to 125, 101 of them.
#include "results/dialects/scripts.h"

namespace plumb {
namespace {
namespace oneflow_face {

constexpr std::string_view kMark = "train: iter";

// `train: iter (.*), loss`
std::optional<std::int64_t> iteration_of(std::string_view line) {
  const auto rest = text_behind(line, "train: iter ");
  const std::size_t end = rest ? rest->rfind(", loss") : std::string_view::npos;
  return end == std::string_view::npos ? std::nullopt : python_int(rest->substr(0, end));
}

// `throughput: (.*)`
std::optional<double> images_per_second_of(std::string_view line) {
  const auto rest = text_behind(line, "throughput: ");
  return rest ? python_float(*rest) : std::nullopt;
}

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (line.find(kMark) == std::string_view::npos) return std::nullopt;
  return reading_of(iteration_of(line), images_per_second_of(line), "has no 'train: iter N, loss'",
                    "has no speed of the form 'throughput: 245.290'");
}

std::int64_t first_line(const Window& window) {
  return std::max<std::int64_t>(window.warmup, 1);
}

double speed(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  const std::int64_t left_out = kFirstCounted - series.first_index + first_line(window) - 1;
  return mean(std::span(series.values).subspan(static_cast<std::size_t>(left_out)));
}

std::string window_of(const Window& window) {
  return lines_after_five(first_line(window), window.iterations);
}

std::string line_of(const LoggedInterval& interval, const RunSize& /*size*/) {
  return fmt::format("train: iter {}, loss {:.6f}, throughput: {:.3f}", interval.last, interval.loss,
                     interval.images_per_second);
}

}  // namespace oneflow_face
}  // namespace

const Dialect kOneflowFace{.name = "oneflow_face",
                           .framework = "OneFlow",
                           .source = "OneFlow's InsightFace, from each iteration's throughput",
                           .highest_first_index = 1,
                           .decimals_at_line_end = 3,
                           .read_line = oneflow_face::read_line,
                           .indices_wanted = indices_wanted_after_five,
                           .speed = oneflow_face::speed,
                           .window_text = oneflow_face::window_of,
                           .format = {.line = oneflow_face::line_of}};

}  // namespace plumb
