// InsightFace's ArcFace on MXNet: "INFO:root:Epoch[0] Batch [40]<TAB>Speed: 1195.56
// samples/sec<TAB>acc=0.000000", a line every 20 iterations with the speed of one node in them. Published
// script: DLPerf c89430b, MxNet/InsightFace/ArcFace/extract_mxnet_logs.py; lines: insightface 863a7ea9 with
// MXNet's Speedometer.
#include <array>

#include "results/dialects/scripts.h"

namespace plumb {
namespace {
namespace mxnet_arcface {

constexpr std::int64_t kIterationsPerLine = 20;
constexpr int kSpeedDecimals = 1;  // the script rounds each line's speed to these
constexpr std::array<std::string_view, 2> kMarks{"INFO:root:Epoch[0] Batch", "INFO:root:Iter[0] Batch"};

bool is_of_dialect(std::string_view line) {
  return line.find(kMarks[0]) != std::string_view::npos || line.find(kMarks[1]) != std::string_view::npos;
}

// 40 for "Batch [40]", "Batch[40]" and "Batch [20-40]".
std::optional<std::int64_t> batch_of(std::string_view line) {
  for (const std::string_view mark : kMarks)
    if (const auto rest = text_behind(line, mark))
      return batch_in_brackets(rest->starts_with(" ") ? rest->substr(1) : *rest);
  return std::nullopt;
}

// Over all nodes; the line has that of one.
std::optional<double> images_per_second_of(std::string_view line, const RunSize& size) {
  const std::optional<double> of_node = decimal_between(line, "Speed: ", " samples/sec");
  if (!of_node) return std::nullopt;
  return round_decimal(*of_node, kSpeedDecimals) * static_cast<double>(size.nodes);
}

std::optional<LineReading> read_line(std::string_view line, const RunSize& size) {
  if (!is_of_dialect(line)) return std::nullopt;
  return reading_of(batch_of(line), images_per_second_of(line, size), "has no 'Batch [N]'",
                    "has no speed of the form 'Speed: 1195.56 samples/sec'");
}

// Numbered by the iterations done, as after them; the speed is that of one node.
std::string line_of(const LoggedInterval& interval, const RunSize& size) {
  return fmt::format("INFO:root:Epoch[0] Batch [{}]\tSpeed: {:.2f} samples/sec\tacc={:.6f}",
                     interval.last + 1, interval.images_per_second / static_cast<double>(size.nodes),
                     interval.top1);
}

}  // namespace mxnet_arcface
}  // namespace

const Dialect kMxnetArcface{
    .name = "mxnet_arcface",
    .framework = "MXNet (deepinsight)",
    .source = "InsightFace on MXNet, from the Speed of every 20 iterations",
    .index_step = mxnet_arcface::kIterationsPerLine,
    .highest_first_index = mxnet_arcface::kIterationsPerLine,
    .read_line = mxnet_arcface::read_line,
    .speed = mean_speed,
    .format = {.iterations_per_line = mxnet_arcface::kIterationsPerLine, .line = mxnet_arcface::line_of}};

}  // namespace plumb
