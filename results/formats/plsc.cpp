// PaddlePaddle's PLSC, a line of every 10 batches with the images/s of all ranks in them. Published script:
// DLPerf branch dev_paddle_plsc_arcface (7e236cf4), PaddlePaddle/PLSC/extract_paddle_logs.py; lines: PLSC
// 9bba9c90, plsc/entry.py.
//
// Paddle's launcher sends every rank's output to one terminal, so a log holds each line as often as its node
// has ranks. The script takes lines 5N to 15N of it (N: nodes), as if a log held one line of each node; with
// 8 ranks on one node those are lines of batches 0 and 10, where they should be of 50 to 140. Here the lines
// of a batch belong together, and batches are counted.
#include "base/text.h"
#include "results/formats/log_format.h"

namespace plumb {
namespace {
namespace plsc {

constexpr std::int64_t kBatchesPerLine = 10;

std::string batches(std::int64_t from, std::int64_t to) {
  return fmt::format("batches {} to {}", from, to);
}

class Plsc final : public SpeedFormat {
 public:
  constexpr Plsc()
      : SpeedFormat({.name = "plsc",
                     .framework = "PaddlePaddle PLSC",
                     .source = "PaddlePaddle's PLSC, from the qps of every 10 batches",
                     .example = "INFO 2021-03-12 10:00:00,000 entry.py:1020] Pass:0 batch:10 lr:0.01250000 "
                                "loss:40.000000 qps:397.44",
                     .shape = "Pass:{epoch} batch:{iteration} *qps:{value}$",
                     .default_window = {.iterations = 150, .warmup = 50},
                     .index_step = kBatchesPerLine,
                     .every_rank_writes = true,
                     .decimals_at_end = 2,
                     .written_step = kBatchesPerLine},
                    {}) {}

  std::string caveat(const LogSeries& series, const Window& window, const RunSize& size) const override {
    const std::int64_t ranks = series.lines_per_index;
    if (ranks == size.nodes) return "";
    const std::int64_t from = window.warmup / kBatchesPerLine * size.nodes;  // the script's slice
    const std::int64_t to = window.iterations / kBatchesPerLine * size.nodes;
    const auto batch_of_line = [&](std::int64_t line) {
      return series.first_index + line / ranks * kBatchesPerLine;
    };
    const std::string taken =
        from >= series.lines
            ? "no line at all"
            : "lines of " + batches(batch_of_line(from), batch_of_line(std::min(to, series.lines) - 1));
    return fmt::format(
        "{} {} written into each log, and the published slice [{}:{}] takes {}; these figures are of {}",
        counted(ranks, "rank"), ranks == 1 ? "has" : "have", from, to, taken,
        batches(series.first_index + window.warmup,
                series.first_index + (window.iterations / kBatchesPerLine - 1) * kBatchesPerLine));
  }

  // Numbered by the first of its batches, so that the script's slice of a 150-iteration log is iterations 51
  // to 150, its warm-up left out whole (PLSC's own lines give the last, so it takes batches 41 to 140).
  std::string line(const LoggedInterval& interval, const RunSize& /*size*/) const override {
    return fmt::format("INFO {} entry.py:1020] Pass:0 batch:{} lr:{:.8f} loss:{:.6f} qps:{:.2f}",
                       interval.stamp, interval.first, interval.learning_rate, interval.loss,
                       interval.images_per_second);
  }
};

constexpr Plsc kFormat;

}  // namespace plsc
}  // namespace

const LogFormat& kPlsc = plsc::kFormat;

}  // namespace plumb
