// PaddlePaddle's PLSC, a line of every 10 batches with the images/s of all ranks in them:
// "INFO 2021-03-12 10:00:00,000 entry.py:1020] Pass:0 batch:10 lr:0.01250000 loss:40.000000 qps:397.44".
// Published script: DLPerf branch dev_paddle_plsc_arcface (7e236cf4),
// PaddlePaddle/PLSC/extract_paddle_logs.py; lines: PLSC 9bba9c90, plsc/entry.py.
//
// Paddle's launcher sends every rank's output to one terminal, so a log holds each line as often as its node
// has ranks. The script takes lines 5N to 15N of it (N: nodes), as if a log held one line of each node; with
// 8 ranks on one node those are lines of batches 0 and 10, where they should be of 50 to 140. Here the lines
// of a batch belong together, and batches are counted.
#include "results/dialects/scripts.h"

namespace plumb {
namespace {
namespace plsc {

constexpr std::string_view kMark = "Pass:0 batch:";
constexpr std::int64_t kBatchesPerLine = 10;

bool is_of_dialect(std::string_view line) {
  return line.find(kMark) != std::string_view::npos;
}

std::optional<double> images_per_second_of(std::string_view line) {
  return decimal_between(line, " qps:", "");
}

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_dialect(line)) return std::nullopt;
  return reading_of(number_between(line, kMark, " "), images_per_second_of(line), "has no 'Pass:0 batch:N'",
                    "has no speed of the form 'qps:397.44'");
}

// The script's slice of the lines.
struct Slice {
  std::int64_t from = 0, to = 0;
};
Slice slice_of(const Window& window, const RunSize& size) {
  return {window.warmup / kBatchesPerLine * size.nodes, window.iterations / kBatchesPerLine * size.nodes};
}

std::string batches(std::int64_t from, std::int64_t to) {
  return fmt::format("batches {} to {}", from, to);
}

std::string caveat(const LogSeries& series, const Window& window, const RunSize& size) {
  const std::int64_t ranks = series.lines_per_index;
  if (ranks == size.nodes) return "";
  const Slice slice = slice_of(window, size);
  const auto batch_of_line = [&](std::int64_t line) {
    return series.first_index + line / ranks * kBatchesPerLine;
  };
  const std::string taken = slice.from >= series.lines
                                ? "no line at all"
                                : "lines of " + batches(batch_of_line(slice.from),
                                                        batch_of_line(std::min(slice.to, series.lines) - 1));
  return fmt::format(
      "{} {} written into each log, and the published slice [{}:{}] takes {}; these figures are of {}",
      counted(ranks, "rank"), ranks == 1 ? "has" : "have", slice.from, slice.to, taken,
      batches(series.first_index + window.warmup,
              series.first_index + (window.iterations / kBatchesPerLine - 1) * kBatchesPerLine));
}

// Numbered by the first of its batches, so that the script's slice of a 150-iteration log is iterations 51 to
// 150, its warm-up left out whole (PLSC's own lines give the last, so it takes batches 41 to 140).
std::string line_of(const LoggedInterval& interval, const RunSize& /*size*/) {
  return fmt::format("INFO {} entry.py:1020] Pass:0 batch:{} lr:{:.8f} loss:{:.6f} qps:{:.2f}",
                     interval.stamp, interval.first, interval.learning_rate, interval.loss,
                     interval.images_per_second);
}

}  // namespace plsc
}  // namespace

const Dialect kPlsc{.name = "plsc",
                    .framework = "PaddlePaddle PLSC",
                    .source = "PaddlePaddle's PLSC, from the qps of every 10 plsc::batches",
                    .default_window = {.iterations = 150, .warmup = 50},
                    .index_step = plsc::kBatchesPerLine,
                    .highest_first_index = plsc::kBatchesPerLine,
                    .ranks_share_a_log = true,
                    .decimals_at_line_end = 2,
                    .read_line = plsc::read_line,
                    .speed = mean_speed,
                    .caveat = plsc::caveat,
                    .format = {.iterations_per_line = plsc::kBatchesPerLine, .line = plsc::line_of}};

}  // namespace plumb
