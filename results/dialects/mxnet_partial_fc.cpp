// InsightFace's Partial FC on MXNet, a line of rank 0 for every iteration but the first:
// "rank-id:0:2021-02-22 10:00:00,123-Iter:21 Rank:27.30 it/sec Total:218.84 it/sec [0][loss]:45.10"; "it" are
// images. Published script: DLPerf c89430b, MxNet/InsightFace/PartailFC/extract_mxnet_logs.py; lines:
// insightface 863a7ea9, recognition/partial_fc/mxnet/callbacks.py, with config.frequent = 1.
#include "results/dialects/scripts.h"

namespace plumb {
namespace {
namespace mxnet_partial_fc {

constexpr int kSpeedDecimals = 1;  // the script rounds each line's speed to these

bool is_of_dialect(std::string_view line) {
  return line.find("Rank:") != std::string_view::npos && line.find("Total:") != std::string_view::npos;
}

std::optional<double> images_per_second_of(std::string_view line) {
  const std::optional<double> value = decimal_between(line, "Total:", " it/sec");
  return value ? std::optional(round_decimal(*value, kSpeedDecimals)) : std::nullopt;
}

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_dialect(line)) return std::nullopt;
  return reading_of(number_between(line, "Iter:", " "), images_per_second_of(line), "has no 'Iter:N'",
                    "has no speed of the form 'Total:218.84 it/sec'");
}

std::int64_t indices_wanted(const Window& window, std::int64_t first_index) {
  return window.iterations - std::max<std::int64_t>(first_index, 1) + 1;
}

// The script's window, from the line numbered `warmup` on and without an end.
double speed(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  const std::int64_t left_out = std::max<std::int64_t>(window.warmup - 1, 0);
  return mean(std::span(series.values).subspan(static_cast<std::size_t>(left_out)));
}

std::string window_of(const Window& window) {
  return fmt::format("iterations {} to the end of each log", window.warmup + 1);
}

std::string line_of(const LoggedInterval& interval, const RunSize& size) {
  return fmt::format("rank-id:0:{}-Iter:{} Rank:{:.2f} it/sec Total:{:.2f} it/sec [0][loss]:{:.2f}",
                     interval.stamp, interval.last + 1,
                     interval.images_per_second / static_cast<double>(size.ranks()),
                     interval.images_per_second, interval.loss);
}

}  // namespace mxnet_partial_fc
}  // namespace

const Dialect kMxnetPartialFc{.name = "mxnet_partial_fc",
                              .framework = "MXNet (deepinsight partial_fc)",
                              .source = "InsightFace's Partial FC on MXNet, from each line's Total",
                              .highest_first_index = 2,
                              .has_no_end = true,
                              .read_line = mxnet_partial_fc::read_line,
                              .indices_wanted = mxnet_partial_fc::indices_wanted,
                              .speed = mxnet_partial_fc::speed,
                              .window_text = mxnet_partial_fc::window_of,
                              .format = {.first_iteration = 1, .line = mxnet_partial_fc::line_of}};

}  // namespace plumb
