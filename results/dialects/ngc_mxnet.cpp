// NVIDIA's MXNet container. A line, which each rank of all nodes writes into one log: "2020-08-01
// 10:00:00,123:INFO: Epoch[0] Batch [0-0]<TAB>Speed: 392.24 samples/sec<TAB>LR: 0.001", the speed that of all
// ranks. Published scripts: DLPerf c89430b, NVIDIADeepLearningExamples/MxNet/Classification/RN50v1.5/;
// extract_mxnet_logs.py takes the Speed of every iteration, extract_mxnet_logs_time.py the stamps of the last
// warm-up iteration and of the last iteration: it counts lines, and takes a log for one that every rank has
// written into. Lines: DeepLearningExamples' fit.py with --disp-batches 1.
#include "results/dialects/scripts.h"
#include "results/dialects/stamps.h"

namespace plumb {
namespace {

constexpr std::string_view kMark = " Epoch[0] Batch ";
constexpr StampFormat kStamp{.fewest_digits = 1, .most_digits = 6};

bool is_of_dialect(std::string_view line) {
  return line.find(kMark) != std::string_view::npos;
}

// 7 for "Batch [0-7]" and "Batch [7]".
std::optional<std::int64_t> batch_of(std::string_view line) {
  return batch_in_brackets(line.substr(line.find(kMark) + kMark.size()));
}

std::optional<LineReading> read_speed(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_dialect(line)) return std::nullopt;
  LineReading reading = reading_of(batch_of(line), samples_per_second(line), "has no 'Batch [N-N]'",
                                   "has no speed of the form 'Speed: 392.24 samples/sec'");
  reading.value = round_decimal(reading.value, 2);
  return reading;
}

std::optional<LineReading> read_stamp(std::string_view line, const RunSize& /*size*/) {
  if (!is_of_dialect(line)) return std::nullopt;
  return reading_of_stamp(batch_of(line), find_stamp(line, kStamp), "has no 'Batch [N-N]'",
                          "has no stamp of the form '2020-08-01 10:00:00,123'");
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

double speed_of_medians(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  return mean_of_medians(after_warmup(series, window), series.lines_per_index);
}

double speed_by_stamps(const LogSeries& series, const Window& window, const RunSize& size) {
  const auto begin = static_cast<std::size_t>(window.warmup * series.lines_per_index - 1);
  return speed_between(series.values[begin], series.values.back(), window.iterations - window.warmup,
                       size.images_per_step);
}

PublishedFigure published_speed(LineReader& lines, const Window& window, const RunSize& size) {
  const std::vector<double> values = published_mxnet_speeds(lines, is_of_dialect);
  if (std::ssize(values) != window.iterations * size.ranks())
    throw Error(ExitCode::bad_data, "it has {} lines with a speed, not {} of each of {} ranks", values.size(),
                window.iterations, size.ranks());
  const std::int64_t left_out = std::min(mxnet_left_out(window), window.iterations) * size.ranks();
  const auto in_window = std::span(values).subspan(static_cast<std::size_t>(left_out));
  return {round_numpy(mean_of_medians(in_window, size.ranks()), 2)};
}

PublishedFigure published_time(LineReader& lines, const Window& window, const RunSize& size) {
  const std::int64_t from = std::max<std::int64_t>(window.warmup, 20);
  return published_between(lines, is_of_dialect,
                           {.begin = from * size.ranks(),
                            .end = window.iterations * size.ranks(),
                            .iterations = window.iterations - from},
                           kStamp, size.images_per_step);
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

}  // namespace

const Dialect kNgcMxnetSpeed{.name = "ngc_mxnet_speed",
                             .framework = "NGC MXNet",
                             .source = "NVIDIA's MXNet, from each line's Speed",
                             .highest_first_index = 1,
                             .ranks_share_a_log = true,
                             .read_line = read_speed,
                             .speed = speed_of_medians,
                             .published = published_speed,
                             .caveat = speed_caveat,
                             .format = {.line = lines_of}};

const Dialect kNgcMxnetTime{.name = "ngc_mxnet_time",
                            .framework = "NGC MXNet",
                            .source = "NVIDIA's MXNet, from the lines' wall stamps",
                            .highest_first_index = 1,
                            .values = ValueKind::stamp,
                            .shares_lines_with_another = true,
                            .ranks_share_a_log = true,
                            .rounding = Rounding::python_averages,
                            .read_line = read_stamp,
                            .speed = speed_by_stamps,
                            .published = published_time,
                            .caveat = time_caveat};

}  // namespace plumb
