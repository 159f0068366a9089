// NVIDIA's MXNet container, from the stamps of the last warm-up iteration and of the last iteration;
// results/dialects/ngc_mxnet.h shows a line. Published script: DLPerf c89430b,
// NVIDIADeepLearningExamples/MxNet/ Classification/RN50v1.5/extract_mxnet_logs_time.py. It counts lines, and
// takes a log for one that every rank has written into.
#include <algorithm>

#include "base/error.h"
#include "results/dialects/dialect.h"
#include "results/dialects/ngc_mxnet.h"
#include "results/dialects/stamps.h"

namespace plumb {
namespace {

constexpr StampFormat kStamp{.fewest_digits = 1, .most_digits = 6};

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_ngc_mxnet(line)) return std::nullopt;
  return reading_of_stamp(ngc_mxnet_batch(line), find_stamp(line, kStamp), "has no 'Batch [N-N]'",
                          "has no stamp of the form '2020-08-01 10:00:00,123'");
}

double speed(const LogSeries& series, const Window& window, const RunSize& size) {
  const auto begin = static_cast<std::size_t>(window.warmup * series.lines_per_index - 1);
  return speed_between(series.values[begin], series.values.back(), window.iterations - window.warmup,
                       size.images_per_step);
}

PublishedFigure published(LineReader& lines, const Window& window, const RunSize& size) {
  const std::int64_t ranks = size.nodes * size.devices_per_node;
  const std::int64_t from = std::max<std::int64_t>(window.warmup, 20);
  return published_between(
      lines, is_of_ngc_mxnet,
      {.begin = from * ranks, .end = window.iterations * ranks, .iterations = window.iterations - from},
      kStamp, size.images_per_step);
}

std::string caveat(const LogSeries& series, const Window& /*window*/, const RunSize& size) {
  const std::int64_t ranks = size.nodes * size.devices_per_node;
  if (series.lines_per_index == ranks) return "";
  return fmt::format(
      "an iteration has {} lines; the published script counts {} lines as one, and has another window or "
      "none",
      series.lines_per_index, ranks);
}

}  // namespace

const Dialect kNgcMxnetTime{.name = "ngc_mxnet_time",
                            .framework = "NGC MXNet",
                            .source = "NVIDIA's MXNet, from the lines' wall stamps",
                            .highest_first_index = 1,
                            .values = ValueKind::stamp,
                            .shares_lines_with_another = true,
                            .ranks_share_a_log = true,
                            .rounding = Rounding::python_averages,
                            .read_line = read_line,
                            .speed = speed,
                            .published = published,
                            .caveat = caveat};

}  // namespace plumb
