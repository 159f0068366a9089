// gluon-cv's ResNet-50 v1b as DLPerf ran it: "Epoch[0] Batch[8]<TAB>Speed: 384.19 samples/sec".
// Published script: DLPerf c89430b, MxNet/Classification/RN50v1b/extract_mxnet_logs.py.
#include "base/error.h"
#include "results/dialects/speeds.h"
#include "results/dialects/tokens.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::string_view kMark = "Epoch[0] Batch[";

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (line.find(kMark) == std::string_view::npos) return std::nullopt;
  LineReading reading =
      reading_of_speed(number_between(line, kMark, "]"), samples_per_second(line), "has no 'Batch[N]'",
                       "has no speed of the form 'Speed: 384.19 samples/sec'");
  reading.value = round_decimal(reading.value, 2);
  return reading;
}

PublishedFigure published(LineReader& lines, const Window& window, const RunSize& /*size*/) {
  // The script's own window: at least 20 iterations are left out, and only warmup-20 if warmup is above 20.
  const std::int64_t from = window.warmup <= 20 ? 20 : window.warmup - 20;
  std::vector<double> in_window;
  std::int64_t count = 0;
  while (const std::optional<std::string_view> line = lines.next()) {
    if (line->find(kMark) == std::string_view::npos) continue;
    const std::optional<double> images_per_second = samples_per_second(*line);
    if (!images_per_second) throw Error(ExitCode::bad_data, "no number in 'Speed: … samples/sec'");
    if (count >= from && count < window.iterations) in_window.push_back(round_decimal(*images_per_second, 2));
    ++count;
  }
  if (count != window.iterations)
    throw Error(ExitCode::bad_data, "it has {} lines with a speed, not {}", count, window.iterations);
  return {round_numpy(mean(in_window), 2)};
}

}  // namespace

const Dialect kMxnetRn50v1b{.name = "mxnet_rn50v1b",
                            .framework = "MXNet (gluon-cv)",
                            .source = "MXNet's gluon-cv and Plumbline, from each line's Speed",
                            .highest_first_index = 1,
                            .published_reads_any_case = true,
                            .read_line = read_line,
                            .speed = mean_speed,
                            .published = published,
                            .format = {.line = own_line}};

}  // namespace plumb
