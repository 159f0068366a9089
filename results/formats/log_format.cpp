#include "results/formats/log_format.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "results/formats/line_reader.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::int64_t kMostCounted = 100'000'000;  // epochs, and iterations of one

// A line that also has its time tells whose images its speed counts.
bool is_of_one_rank(const SpeedFacts& facts, const Captured& captured, const RunSize& size) {
  if (facts.of != SpeedFacts::rank) return false;
  if (!captured.seconds) return true;
  constexpr double kRounding = 0.02;
  const double of_rank = size.images_per_step / static_cast<double>(size.ranks());
  return std::abs(*captured.value * *captured.seconds / of_rank - 1) < kRounding;
}

// Fills in the value; false if the line has none.
bool read_speed(const SpeedFacts& facts, const Captured& captured, const RunSize& size,
                LineReading& reading) {
  if (facts.mean == SpeedFacts::so_far && *captured.iteration == 1) return false;
  const double value = *captured.value;
  if (!(value > 0) || !std::isfinite(value)) {
    reading.problem = facts.seconds > 0 ? "has a time that is not a positive number"
                                        : "has a speed that is not a positive number";
    return true;
  }
  const double seconds = value * facts.seconds;
  const bool keeps_time = seconds > 0 && facts.mean == SpeedFacts::times;
  reading.value = keeps_time ? value : seconds > 0 ? size.images_per_step / seconds : value;
  if (facts.decimals >= 0) reading.value = round_decimal(reading.value, facts.decimals);
  if (facts.of == SpeedFacts::node) reading.value *= static_cast<double>(size.nodes);
  if (is_of_one_rank(facts, captured, size)) reading.value *= static_cast<double>(size.ranks());
  return true;
}

// The same for a stamp.
bool read_stamp(StampKind kind, std::string_view line, const Captured& captured, LineReading& reading) {
  constexpr std::string_view kNoDate = "has a stamp that is not a date";
  if (kind >= StampKind::since_1970) {
    reading.value = *captured.value / (kind == StampKind::since_1970 ? 1 : 1000);
    if (!(reading.value > 0) || !std::isfinite(reading.value)) reading.problem = kNoDate;
    return true;
  }
  const std::optional<Stamp> stamp = find_stamp(line, kind);
  if (!stamp) return false;
  reading.value = stamp->microseconds;
  if (!stamp->is_date) reading.problem = kNoDate;
  return true;
}

std::span<const double> speeds_in_window(const LogFormat& format, const LogSeries& series,
                                         const Window& window) {
  const std::int64_t left_out = (window.warmup + series.index_step - 1) / series.index_step;
  return series.values_from(format.counts_last_warmup ? std::max<std::int64_t>(left_out, 1) - 1 : left_out);
}

// The stamps of the window, the one that begins it among them; the last rank's of each index.
std::vector<double> stamps_in_window(const LogFormat& format, const LogSeries& series, const Window& window) {
  // Without a line for the last iteration of the warm-up, the window begins with the end of the next one.
  const std::int64_t begin = window.warmup / series.index_step - (format.unlogged > 0 ? 0 : 1);
  const std::span<const double> values = series.values_from(begin);
  const auto ranks = static_cast<std::size_t>(series.lines_per_index);
  std::vector<double> stamps;
  for (std::size_t i = ranks; i <= values.size(); i += ranks) stamps.push_back(values[i - 1]);
  return stamps;
}

// Without a year less than a day.
double seconds_between(StampKind kind, double from, double to) {
  if (kind >= StampKind::since_1970) return to - from;
  return (kind == StampKind::of_glog ? std::fmod(to - from + 400 * kDay, kDay) : to - from) / 1e6;
}

double speed_by_stamps(const LogFormat& format, const LogSeries& series, const Window& window,
                       const RunSize& size) {
  const std::vector<double> stamps = stamps_in_window(format, series, window);
  const bool goes_around = format.clock_goes_around();
  double seconds = goes_around ? 0 : seconds_between(*format.stamps, stamps.front(), stamps.back());
  for (std::size_t i = 1; goes_around && i < stamps.size(); ++i)
    seconds += seconds_between(*format.stamps, stamps[i - 1], stamps[i]);
  const auto iterations = static_cast<double>(stamps.size() - 1) * static_cast<double>(series.index_step);
  return size.images_per_step / (seconds / iterations);
}

// From the means up to the last line and up to the warm-up.
double speed_by_means(const LogSeries& series, const Window& window, const RunSize& size) {
  const auto ranks = static_cast<std::size_t>(series.lines_per_index);
  const auto seconds_up_to = [&](std::int64_t index) {
    const auto done = static_cast<double>(series.first_index + index * series.index_step + 1);
    return mean(std::span(series.means).subspan(static_cast<std::size_t>(index) * ranks, ranks)) * done;
  };
  const double seconds = seconds_up_to(window.iterations / series.index_step) -
                         seconds_up_to(series.lead + window.warmup / series.index_step - 1);
  return size.images_per_step / (seconds / static_cast<double>(window.iterations - window.warmup));
}

}  // namespace

std::span<const double> LogSeries::values_from(std::int64_t index_in_window) const {
  const std::int64_t left_out = std::max<std::int64_t>(lead + index_in_window, 0) * lines_per_index;
  return std::span(values).subspan(static_cast<std::size_t>(left_out));
}

bool begins_with_own_line(const std::filesystem::path& file) {
  LineReader lines(file);
  const std::optional<std::string_view> line = lines.next();
  return line && line->find(" sec Epoch[") != std::string_view::npos;
}

LineReading LogFormat::read_line(std::string_view line, const RunSize& size) const {
  Captured captured;
  LineReading reading{.fit = match(line, captured)};
  reading.misfit = captured.misfit;
  if (reading.fit != Fit::whole) return reading;
  reading.has_index = captured.iteration.has_value();
  reading.epoch = captured.epoch.value_or(0);
  reading.iteration = captured.iteration.value_or(0);
  if (captured.from) reading.step = reading.iteration - *captured.from;
  if (captured.count) {  // the line counts epochs
    reading.step = std::min(*captured.count, kMostCounted);
    reading.iteration = std::min(reading.iteration, kMostCounted) * reading.step;
  }
  reading.mean = captured.mean;
  reading.loss = captured.loss;
  if (captured.writer) reading.writer = std::to_string(*captured.writer);
  reading.has_value = captured.value || stamps;
  if (!reading.has_value) return reading;
  const bool is_read =
      stamps ? read_stamp(*stamps, line, captured, reading) : read_speed(speeds, captured, size, reading);
  if (!is_read) reading.fit = Fit::begins;
  return reading;
}

std::string LogFormat::line(const LoggedInterval& interval, const RunSize& size) const {
  const auto iterations = static_cast<double>(interval.last + 1 - interval.first);
  const double speed = interval.images_per_second, seconds = size.images_per_step * iterations / speed;
  const std::string line =
      fmt::format(fmt::runtime(writes), fmt::arg("first", interval.first), fmt::arg("last", interval.last),
                  fmt::arg("done", interval.last + 1), fmt::arg("images_per_second", speed),
                  fmt::arg("node_images_per_second", speed / static_cast<double>(size.nodes)),
                  fmt::arg("rank_images_per_second", speed / static_cast<double>(size.ranks())),
                  fmt::arg("seconds", interval.seconds), fmt::arg("speed_seconds", seconds),
                  fmt::arg("milliseconds", seconds * 1000), fmt::arg("loss", interval.loss),
                  fmt::arg("top1", interval.top1), fmt::arg("top1_percent", interval.top1 * 100),
                  fmt::arg("top5", interval.top5), fmt::arg("learning_rate", interval.learning_rate),
                  fmt::arg("stamp", interval.stamp), fmt::arg("fine_stamp", interval.fine_stamp),
                  fmt::arg("month", interval.fine_stamp.substr(5, 2)),
                  fmt::arg("day_and_time", interval.fine_stamp.substr(8)),
                  fmt::arg("unix_seconds", interval.unix_seconds));
  std::string lines = line;
  for (std::int64_t rank = 1; writes_per_rank && rank < size.ranks(); ++rank) lines += "\n" + line;
  return lines;
}

std::string LogFormat::header(const RunSize& size, std::string_view network) const {
  const SizeWords& words = size_words;
  if (words.nodes.empty()) return "";
  const auto batch = std::llround(size.images_per_step / static_cast<double>(size.ranks()));
  return fmt::format("model = {}\n{} = {}\n{} = {}\n{} = {}\n", network, words.batch_per_device, batch,
                     words.devices_per_node, size.devices_per_node, words.nodes, size.nodes);
}

std::int64_t LogFormat::lead(std::int64_t first_iteration, std::int64_t step) const {
  if (first_counted > 0 && step > 1) return 1;
  return std::max<std::int64_t>(first_counted - first_iteration, 0) - unlogged / step;
}

std::string LogFormat::caveat(const LogSeries& series, const Window& window, const RunSize& size) const {
  if (!note.empty()) return std::string(note);
  if (series.counts_means())
    return fmt::format(
        "a log has a line for every {} iterations, and the figure is of iterations {} to {}, by the means in "
        "parentheses; {} prints every iteration",
        series.index_step, window.warmup + 1, window.iterations, how_to_print);
  const std::int64_t lines = script_lines == one_per_node   ? size.nodes
                             : script_lines == one_per_rank ? size.ranks()
                                                            : 1;
  const bool other_lines = script_lines != any && series.lines_per_index != lines;
  const bool other_step = script_step > 0 && series.index_step != script_step;
  return other_lines || other_step ? std::string(script_note) : "";
}

double LogFormat::round_average(double value) const {
  return rounding != Rounding::numpy ? round_decimal(value, 2) : round_numpy(value, 2);
}

double LogFormat::round_median(double value) const {
  return rounding >= Rounding::python ? round_decimal(value, 2) : round_numpy(value, 2);
}

double LogFormat::speedup(double median, double base_median) const {
  if (is_table()) return round_median(median / base_median);
  return round_median(round_median(median) / round_median(base_median));
}

double LogFormat::speed(const LogSeries& series, const Window& window, const RunSize& size) const {
  if (stamps) return speed_by_stamps(*this, series, window, size);
  if (speeds.mean == SpeedFacts::so_far) return series.values.back();
  if (series.counts_means()) return speed_by_means(series, window, size);
  const std::span<const double> values = speeds_in_window(*this, series, window);
  const auto ranks = static_cast<std::size_t>(series.lines_per_index);
  if (speeds.mean == SpeedFacts::speeds) return mean(values);
  if (speeds.mean == SpeedFacts::medians_of_ranks) {
    std::vector<double> medians;
    for (std::size_t i = 0; i + ranks <= values.size(); i += ranks)
      medians.push_back(median(values.subspan(i, ranks)));
    return mean(medians);
  }
  double sum = 0;  // one after the other, as the scripts add
  for (const double value : values) sum += value;
  const auto iterations = static_cast<double>(values.size()) * static_cast<double>(series.index_step);
  return size.images_per_step / (sum * speeds.seconds / iterations);
}

std::vector<double> LogFormat::step_seconds(const LogSeries& series, const Window& window,
                                            const RunSize& size) const {
  // Means tell nothing of single steps.
  if (speeds.mean == SpeedFacts::so_far || series.counts_means()) return {};
  const auto step = static_cast<double>(series.index_step);
  std::vector<double> seconds;
  if (stamps) {
    const std::vector<double> ends = stamps_in_window(*this, series, window);
    for (std::size_t i = 1; i < ends.size(); ++i)
      seconds.push_back(seconds_between(*stamps, ends[i - 1], ends[i]) / step);
    return seconds;
  }
  const std::span<const double> values = speeds_in_window(*this, series, window);
  const bool are_times = speeds.mean == SpeedFacts::times;
  for (std::size_t i = 0; i < values.size(); i += static_cast<std::size_t>(series.lines_per_index))
    seconds.push_back(are_times ? values[i] * speeds.seconds / step : size.images_per_step / values[i]);
  return seconds;
}

std::span<const LogFormat* const> log_formats() {
  static const LogFormat* const kFormats[]{
      &kPaddleSpeed,  &kPaddleTime,  &kMxnetRn50v1b,   &kMxnetArcface,   &kMxnetPartialFc,  &kNgcMxnetSpeed,
      &kNgcMxnetTime, &kNgcTfSpeed,  &kNgcTfTime,      &kNgcPytorchTime, &kNgcPytorchSpeed, &kPytorch,
      &kTf2Speed,     &kTf2Time,     &kMindspore,      &kOneflowCnn,     &kOneflowFace,     &kPlsc,
      &kMxnetNodes,   &kNgcMxnetDll, &kPaddleIps,      &kArcFaceTorch,   &kMegatron,        &kOneflowTrain,
      &kMllog,        &kMllogEpochs, &kTfCnnBenchmarks};
  return kFormats;
}

const LogFormat* find_log_format(std::string_view name) {
  const auto found = std::ranges::find(log_formats(), name, &LogFormat::name);
  return found == log_formats().end() ? nullptr : *found;
}

std::optional<Window> in_whole_lines(const LogFormat& format, const Window& wanted, std::int64_t step) {
  const std::int64_t lowest = std::max(wanted.warmup, format.least_warmup());
  const Window window{wanted.iterations / step * step, (lowest + step - 1) / step * step};
  return window.warmup < window.iterations ? std::optional(window) : std::nullopt;
}

std::string window_text(const LogFormat& format, const Window& window) {
  std::int64_t first = window.warmup + 1;
  if (format.counts_last_warmup) first = std::max<std::int64_t>(window.warmup, 1);
  if (format.stamps && format.unlogged > 0) ++first;
  const std::int64_t step = std::max<std::int64_t>(format.index_step, 1);
  const std::string end =
      format.has_no_end ? "the end of each log" : std::to_string(window.iterations / step * step);
  if (format.first_counted == 0) return fmt::format("iterations {} to {}", first, end);
  return fmt::format("lines {} to {} after iteration {}", first, end, format.first_counted - 1);
}

}  // namespace plumb
