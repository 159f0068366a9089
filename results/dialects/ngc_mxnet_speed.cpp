// NVIDIA's MXNet container, from the Speed of every iteration; results/dialects/ngc_mxnet.h shows a line.
// Published script: DLPerf c89430b, NVIDIADeepLearningExamples/MxNet/Classification/RN50v1.5/
// extract_mxnet_logs.py; lines: DeepLearningExamples' fit.py with --disp-batches 1.

#include "base/error.h"
#include "results/dialects/dialect.h"
#include "results/dialects/ngc_mxnet.h"
#include "results/dialects/tokens.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::string_view kMark = " Epoch[0] Batch ";

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_ngc_mxnet(line)) return std::nullopt;
  LineReading reading =
      reading_of_speed(ngc_mxnet_batch(line), samples_per_second(line), "has no 'Batch [N-N]'",
                       "has no speed of the form 'Speed: 392.24 samples/sec'");
  reading.value = round_decimal(reading.value, 2);
  return reading;
}

// The mean over iterations of the median over ranks. `values`: those of one iteration after the other.
double mean_of_medians(std::span<const double> values, std::int64_t ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<double> medians;
  for (std::size_t i = 0; i + count <= values.size(); i += count) {
    const auto of_iteration = values.subspan(i, count);
    medians.push_back(median({of_iteration.begin(), of_iteration.end()}));
  }
  return mean(medians);
}

double speed(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  return mean_of_medians(after_warmup(series, window), series.lines_per_index);
}

PublishedFigure published(LineReader& lines, const Window& window, const RunSize& size) {
  // The script's own window: at least 20 iterations are left out, and only warmup-20 if warmup is above 20.
  const std::int64_t from = window.warmup <= 20 ? 20 : window.warmup - 20;
  const std::int64_t ranks = size.nodes * size.devices_per_node;
  std::vector<double> values;
  while (const std::optional<std::string_view> line = lines.next()) {
    if (!is_of_ngc_mxnet(*line)) continue;
    const std::optional<double> images_per_second = samples_per_second(*line);
    if (!images_per_second) throw Error(ExitCode::bad_data, "no number in 'Speed: … samples/sec'");
    values.push_back(round_decimal(*images_per_second, 2));
  }
  if (static_cast<std::int64_t>(values.size()) != window.iterations * ranks)
    throw Error(ExitCode::bad_data, "it has {} lines with a speed, not {} of each of {} ranks", values.size(),
                window.iterations, ranks);
  const auto left_out = static_cast<std::size_t>(std::min(from, window.iterations) * ranks);
  return {round_numpy(mean_of_medians(std::span(values).subspan(left_out), ranks), 2)};
}

std::string caveat(const LogSeries& series, const Window& /*window*/, const RunSize& /*size*/) {
  if (series.late_lines == 0) return "";
  return fmt::format(
      "{} lines stand behind the next iteration's first one; they count where they belong, the published "
      "script "
      "takes lines as they come",
      series.late_lines);
}

// Each rank's line.
std::string lines_of(const LoggedInterval& interval, const RunSize& size) {
  return once_per_rank(
      fmt::format("{}:INFO: Epoch[0] Batch [{}-{}]\tSpeed: {:.2f} samples/sec\tLR: {:.6f}", interval.stamp,
                  interval.first, interval.first, interval.images_per_second, interval.learning_rate),
      size);
}

}  // namespace

bool is_of_ngc_mxnet(std::string_view line) {
  return line.find(kMark) != std::string_view::npos;
}

std::optional<std::int64_t> ngc_mxnet_batch(std::string_view line) {
  return batch_in_brackets(line.substr(line.find(kMark) + kMark.size()));
}

const Dialect kNgcMxnetSpeed{.name = "ngc_mxnet_speed",
                             .framework = "NGC MXNet",
                             .source = "NVIDIA's MXNet, from each line's Speed",
                             .highest_first_index = 1,
                             .ranks_share_a_log = true,
                             .read_line = read_line,
                             .speed = speed,
                             .published = published,
                             .caveat = caveat,
                             .format = {.line = lines_of}};

}  // namespace plumb
