#include "results/formats/log_format.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "results/formats/line_reader.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::int64_t kMostCounted = 100'000'000;  // epochs, and iterations of one

}  // namespace

std::span<const double> LogSeries::values_from(std::int64_t index_in_window) const {
  const std::int64_t left_out = std::max<std::int64_t>(lead + index_in_window, 0) * lines_per_index;
  return std::span(values).subspan(static_cast<std::size_t>(left_out));
}

std::string own_line(const LoggedInterval& interval) {
  return fmt::format(
      "{}-INFO: [Pass 0, train batch {}] \tloss {:.5f}, acc1 {:.5f}, acc5 {:.5f}, lr {:.5f}, elapse {:.6f} "
      "sec Epoch[0] Batch[{}]\tSpeed: {:.2f} samples/sec",
      interval.stamp, interval.last, interval.loss, interval.top1, interval.top5, interval.learning_rate,
      interval.seconds, interval.last + 1, interval.images_per_second);
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
  const bool takes_two_lines = !captured.value && !has_stamps();
  reading.has_value = !takes_two_lines;
  if (!takes_two_lines && !read_value(line, captured, size, reading)) reading.fit = Fit::begins;
  return reading;
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

std::string LogFormat::caveat(const LogSeries& series, const Window& /*window*/, const RunSize& size) const {
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

// A line that also has its time tells whose images its speed counts.
bool SpeedFormat::is_of_one_rank(const Captured& captured, const RunSize& size) const {
  if (speed_facts_.of != SpeedFacts::rank) return false;
  if (!captured.seconds) return true;
  constexpr double kRounding = 0.02;
  const double of_rank = size.images_per_step / static_cast<double>(size.ranks());
  return std::abs(*captured.value * *captured.seconds / of_rank - 1) < kRounding;
}

bool SpeedFormat::read_value(std::string_view /*line*/, const Captured& captured, const RunSize& size,
                             LineReading& reading) const {
  const double value = *captured.value;
  if (!(value > 0) || !std::isfinite(value)) {
    reading.problem = speed_facts_.seconds > 0 ? "has a time that is not a positive number"
                                               : "has a speed that is not a positive number";
    return true;
  }
  const double seconds = value * speed_facts_.seconds;
  const bool keeps_time = seconds > 0 && speed_facts_.mean == SpeedFacts::times;
  reading.value = keeps_time ? value : seconds > 0 ? size.images_per_step / seconds : value;
  if (speed_facts_.decimals >= 0) reading.value = round_decimal(reading.value, speed_facts_.decimals);
  if (speed_facts_.of == SpeedFacts::node) reading.value *= static_cast<double>(size.nodes);
  if (is_of_one_rank(captured, size)) reading.value *= static_cast<double>(size.ranks());
  return true;
}

std::span<const double> SpeedFormat::in_window(const LogSeries& series, const Window& window) const {
  const std::int64_t left_out = (window.warmup + series.index_step - 1) / series.index_step;
  return series.values_from(counts_last_warmup ? std::max<std::int64_t>(left_out, 1) - 1 : left_out);
}

double SpeedFormat::speed(const LogSeries& series, const Window& window, const RunSize& size) const {
  const std::span<const double> values = in_window(series, window);
  const auto ranks = static_cast<std::size_t>(series.lines_per_index);
  if (speed_facts_.mean == SpeedFacts::speeds) return mean(values);
  if (speed_facts_.mean == SpeedFacts::medians_of_ranks) {
    std::vector<double> medians;
    for (std::size_t i = 0; i + ranks <= values.size(); i += ranks)
      medians.push_back(median(values.subspan(i, ranks)));
    return mean(medians);
  }
  double sum = 0;  // one after the other, as the scripts add
  for (const double value : values) sum += value;
  const auto iterations = static_cast<double>(values.size()) * static_cast<double>(series.index_step);
  return size.images_per_step / (sum * speed_facts_.seconds / iterations);
}

std::vector<double> SpeedFormat::step_seconds(const LogSeries& series, const Window& window,
                                              const RunSize& size) const {
  const std::span<const double> values = in_window(series, window);
  const auto ranks = static_cast<std::size_t>(series.lines_per_index);
  const bool are_times = speed_facts_.mean == SpeedFacts::times;
  std::vector<double> seconds;
  for (std::size_t i = 0; i < values.size(); i += ranks)
    seconds.push_back(are_times ? values[i] * speed_facts_.seconds / static_cast<double>(series.index_step)
                                : size.images_per_step / values[i]);
  return seconds;
}

bool StampFormat::read_value(std::string_view line, const Captured& captured, const RunSize& /*size*/,
                             LineReading& reading) const {
  constexpr std::string_view kNoDate = "has a stamp that is not a date";
  if (kind_ == StampKind::since_1970) {
    reading.value = *captured.value;
    if (!(reading.value > 0) || !std::isfinite(reading.value)) reading.problem = kNoDate;
    return true;
  }
  const std::optional<Stamp> stamp = find_stamp(line, kind_);
  if (!stamp) return false;
  reading.value = stamp->microseconds;
  if (!stamp->is_date) reading.problem = kNoDate;
  return true;
}

std::vector<double> StampFormat::in_window(const LogSeries& series, const Window& window) const {
  // Without a line for the last iteration of the warm-up, the window begins with the end of the next one.
  const std::int64_t begin = window.warmup / series.index_step - (unlogged > 0 ? 0 : 1);
  const std::span<const double> values = series.values_from(begin);
  const auto ranks = static_cast<std::size_t>(series.lines_per_index);
  std::vector<double> stamps;
  for (std::size_t i = ranks; i <= values.size(); i += ranks) stamps.push_back(values[i - 1]);
  return stamps;
}

double StampFormat::seconds_between(double from, double to) const {
  if (kind_ == StampKind::since_1970) return to - from;
  return (clock_goes_around() ? std::fmod(to - from + 400 * kDay, kDay) : to - from) / 1e6;
}

double StampFormat::speed(const LogSeries& series, const Window& window, const RunSize& size) const {
  const std::vector<double> stamps = in_window(series, window);
  double seconds = clock_goes_around() ? 0 : seconds_between(stamps.front(), stamps.back());
  for (std::size_t i = 1; clock_goes_around() && i < stamps.size(); ++i)
    seconds += seconds_between(stamps[i - 1], stamps[i]);
  const auto iterations = static_cast<double>(stamps.size() - 1) * static_cast<double>(series.index_step);
  return size.images_per_step / (seconds / iterations);
}

std::vector<double> StampFormat::step_seconds(const LogSeries& series, const Window& window,
                                              const RunSize& /*size*/) const {
  const std::vector<double> stamps = in_window(series, window);
  std::vector<double> seconds;
  for (std::size_t i = 1; i < stamps.size(); ++i)
    seconds.push_back(seconds_between(stamps[i - 1], stamps[i]) / static_cast<double>(series.index_step));
  return seconds;
}

std::span<const LogFormat* const> log_formats() {
  static const std::array kFormats{
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

std::string once_per_rank(const std::string& line, const RunSize& size) {
  std::string text = line;
  for (std::int64_t rank = 1; rank < size.ranks(); ++rank) text += "\n" + line;
  return text;
}

std::string window_text(const LogFormat& format, const Window& window) {
  std::int64_t first = window.warmup + 1;
  if (format.counts_last_warmup) first = std::max<std::int64_t>(window.warmup, 1);
  if (format.has_stamps() && format.unlogged > 0) ++first;
  const std::int64_t step = std::max<std::int64_t>(format.index_step, 1);
  const std::string end =
      format.has_no_end ? "the end of each log" : std::to_string(window.iterations / step * step);
  if (format.first_counted == 0) return fmt::format("iterations {} to {}", first, end);
  return fmt::format("lines {} to {} after iteration {}", first, end, format.first_counted - 1);
}

}  // namespace plumb
