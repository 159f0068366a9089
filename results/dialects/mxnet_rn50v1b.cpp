// gluon-cv's ResNet-50 v1b as DLPerf ran it: "Epoch[0] Batch[8]<TAB>Speed: 384.19 samples/sec".
// Published script: DLPerf c89430b, MxNet/Classification/RN50v1b/extract_mxnet_logs.py.
#include "results/dialects/scripts.h"

namespace plumb {
namespace {

constexpr std::string_view kMark = "Epoch[0] Batch[";

bool is_of_dialect(std::string_view line) {
  return line.find(kMark) != std::string_view::npos;
}

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_dialect(line)) return std::nullopt;
  LineReading reading =
      reading_of(number_between(line, kMark, "]"), samples_per_second(line), "has no 'Batch[N]'",
                 "has no speed of the form 'Speed: 384.19 samples/sec'");
  reading.value = round_decimal(reading.value, 2);
  return reading;
}

PublishedFigure published(LineReader& lines, const Window& window, const RunSize& /*size*/) {
  const std::vector<double> values = published_mxnet_speeds(lines, is_of_dialect);
  if (std::ssize(values) != window.iterations)
    throw Error(ExitCode::bad_data, "it has {} lines with a speed, not {}", values.size(), window.iterations);
  return mean_of_slice(values, mxnet_left_out(window), window.iterations);
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
