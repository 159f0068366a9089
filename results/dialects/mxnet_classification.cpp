// ResNet-50 on MXNet, by gluon-cv (v1b) and in NVIDIA's container; the published scripts of the speeds
// (DLPerf c89430b) are alike.
//
// gluon-cv as DLPerf ran it: "Epoch[0] Batch[8]<TAB>Speed: 384.19 samples/sec". Published script:
// MxNet/Classification/RN50v1b/extract_mxnet_logs.py.
//
// NVIDIA's MXNet. A line, which each rank of all nodes writes into one log: "2020-08-01
// 10:00:00,123:INFO: Epoch[0] Batch [0-0]<TAB>Speed: 392.24 samples/sec<TAB>LR: 0.001", the speed that of all
// ranks. Published scripts: NVIDIADeepLearningExamples/MxNet/Classification/RN50v1.5/;
// extract_mxnet_logs.py takes the Speed of every iteration, extract_mxnet_logs_time.py the stamps of the last
// warm-up iteration and of the last iteration: it counts lines, and takes a log for one that every rank has
// written into. Lines: DeepLearningExamples' fit.py with --disp-batches 1.
#include "results/dialects/scripts.h"
#include "results/dialects/stamps.h"

namespace plumb {
namespace {
namespace mxnet_classification {

constexpr std::string_view kGluonMark = "Epoch[0] Batch[";
constexpr std::string_view kNgcMark = " Epoch[0] Batch ";
constexpr StampFormat kStamp{.fewest_digits = 1, .most_digits = 6};

bool is_of_gluon(std::string_view line) {
  return line.find(kGluonMark) != std::string_view::npos;
}

bool is_of_ngc(std::string_view line) {
  return line.find(kNgcMark) != std::string_view::npos;
}

// 7 for "Batch [0-7]" and "Batch [7]".
std::optional<std::int64_t> batch_of(std::string_view line) {
  return batch_in_brackets(line.substr(line.find(kNgcMark) + kNgcMark.size()));
}

// The reading of a line with a speed, which the scripts round.
LineReading reading_of_rounded(std::optional<std::int64_t> index, std::string_view line,
                               std::string_view no_index, std::string_view no_speed) {
  LineReading reading = reading_of(index, samples_per_second(line), no_index, no_speed);
  reading.value = round_decimal(reading.value, 2);
  return reading;
}

std::optional<LineReading> read_gluon(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_gluon(line)) return std::nullopt;
  return reading_of_rounded(number_between(line, kGluonMark, "]"), line, "has no 'Batch[N]'",
                            "has no speed of the form 'Speed: 384.19 samples/sec'");
}

std::optional<LineReading> read_ngc_speed(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_ngc(line)) return std::nullopt;
  return reading_of_rounded(batch_of(line), line, "has no 'Batch [N-N]'",
                            "has no speed of the form 'Speed: 392.24 samples/sec'");
}

std::optional<LineReading> read_ngc_stamp(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_ngc(line)) return std::nullopt;
  return reading_of_stamp(batch_of(line), find_stamp(line, kStamp), "has no 'Batch [N-N]'",
                          "has no stamp of the form '2020-08-01 10:00:00,123'");
}

// The mean over iterations of the median over ranks. `values`: those of one iteration after the other.
double mean_of_medians(std::span<const double> values, std::int64_t ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<double> medians;
  for (std::size_t i = 0; i + count <= values.size(); i += count)
    medians.push_back(median(values.subspan(i, count)));
  return mean(medians);
}

double speed_of_medians(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  return mean_of_medians(after_warmup(series, window), series.lines_per_index);
}

double speed_by_stamps(const LogSeries& series, const Window& window, const RunSize& size) {
  const auto begin = static_cast<std::size_t>(window.warmup * series.lines_per_index - 1);
  return speed_between(series.values[begin], series.values.back(), window.iterations - window.warmup,
                       size.images_per_step);
}

std::string speed_caveat(const LogSeries& series, const Window& /*window*/, const RunSize& /*size*/) {
  if (series.late_lines == 0) return "";
  return fmt::format(
      "{} lines stand behind the next iteration's first one; they count where they belong, the published "
      "script takes lines as they come",
      series.late_lines);
}

std::string time_caveat(const LogSeries& series, const Window& /*window*/, const RunSize& size) {
  if (series.lines_per_index == size.ranks()) return "";
  return fmt::format(
      "an iteration has {} lines; the published script counts {} lines as one, and has another window or "
      "none",
      series.lines_per_index, size.ranks());
}

// Each rank's line.
std::string lines_of(const LoggedInterval& interval, const RunSize& size) {
  return once_per_rank(
      fmt::format("{}:INFO: Epoch[0] Batch [{}-{}]\tSpeed: {:.2f} samples/sec\tLR: {:.6f}", interval.stamp,
                  interval.first, interval.first, interval.images_per_second, interval.learning_rate),
      size);
}

}  // namespace mxnet_classification
}  // namespace

const Dialect kMxnetRn50v1b{.name = "mxnet_rn50v1b",
                            .framework = "MXNet (gluon-cv)",
                            .source = "MXNet's gluon-cv and Plumbline, from each line's Speed",
                            .model = "rn50v1b",
                            .highest_first_index = 1,
                            .read_line = mxnet_classification::read_gluon,
                            .speed = mean_speed,
                            .format = {.line = own_line}};

const Dialect kNgcMxnetSpeed{.name = "ngc_mxnet_speed",
                             .framework = "NGC MXNet",
                             .source = "NVIDIA's MXNet, from each line's Speed",
                             .model = "resnet50",
                             .highest_first_index = 1,
                             .ranks_share_a_log = true,
                             .read_line = mxnet_classification::read_ngc_speed,
                             .speed = mxnet_classification::speed_of_medians,
                             .caveat = mxnet_classification::speed_caveat,
                             .format = {.line = mxnet_classification::lines_of}};

const Dialect kNgcMxnetTime{.name = "ngc_mxnet_time",
                            .framework = "NGC MXNet",
                            .source = "NVIDIA's MXNet, from the lines' wall stamps",
                            .model = "resnet50",
                            .highest_first_index = 1,
                            .values = ValueKind::stamp,
                            .shares_lines_with_another = true,
                            .ranks_share_a_log = true,
                            .rounding = Rounding::python_averages,
                            .read_line = mxnet_classification::read_ngc_stamp,
                            .speed = mxnet_classification::speed_by_stamps,
                            .caveat = mxnet_classification::time_caveat};

}  // namespace plumb
