#include "results/dialects/dialect.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "results/dialects/log_check.h"
#include "results/dialects/tokens.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// Lines that give both a time and a speed tell how many images a step had: product of the two. If all lines
// agree on a number that isn't the one of the file's name and folder, the log belongs elsewhere; if each has
// one of two numbers that are far apart, two runs are in it.
class ImagesPerStep {
 public:
  void take(std::string_view line) {
    const std::optional<double> seconds = elapse_seconds(line), images_per_second = samples_per_second(line);
    if (!seconds || !images_per_second || !(*seconds > 0) || !(*images_per_second > 0)) return;
    const double images = *seconds * *images_per_second;
    // Two decimals of the speed and six of the time are printed.
    const double slack = images * (0.01 + 0.005 / *images_per_second + 5e-7 / *seconds);
    if (!first_.narrow(images - slack, images + slack) && !second_.narrow(images - slack, images + slack))
      tells_ = false;
  }

  std::optional<Defect> defect(double wanted) const {
    constexpr double kFarApart = 1.1;
    if (!tells_ || first_.lines == 0) return std::nullopt;
    if (second_.lines > 0) {
      if (second_.low < kFarApart * first_.high && first_.low < kFarApart * second_.high) return std::nullopt;
      return Defect{
          Flaw::mixed,
          fmt::format("its lines are of {} and of {} images per step: more than one run in one file",
                      first_.text(), second_.text())};
    }
    const bool fits = wanted >= first_.low && wanted <= first_.high;
    if (fits || !(first_.low < 1e15)) return std::nullopt;
    return Defect{Flaw::misnamed,
                  fmt::format("its lines are of {} images per step, its name and folder say {}",
                              first_.text(), std::llround(wanted))};
  }

 private:
  // What some lines agree on.
  struct Range {
    double low = 0, high = HUGE_VAL;
    std::int64_t lines = 0;

    // False, and nothing is changed, if a line doesn't fit.
    bool narrow(double line_low, double line_high) {
      if (line_low > high || line_high < low) return false;
      low = std::max(low, line_low);
      high = std::min(high, line_high);
      ++lines;
      return true;
    }
    std::string text() const { return std::to_string(std::llround(std::min((low + high) / 2, 1e18))); }
  };
  Range first_, second_;
  bool tells_ = true;
};

// A last line without an end whose value may have lost digits.
bool is_torn(std::string_view line, const Dialect& dialect) {
  const std::size_t decimals = dialect.decimals_at_line_end;
  if (decimals == 0) return false;
  const std::size_t before = line.find_last_not_of("0123456789");
  return before == std::string_view::npos || line[before] != '.' || line.size() - before - 1 < decimals;
}

// What was torn goes on with the next line, and that begins with the same words.
bool is_two_lines(std::string_view line) {
  constexpr std::size_t kBeginning = 10;
  const std::string_view beginning = line.substr(0, kBeginning);
  if (beginning.find_first_not_of(" \t") == std::string_view::npos) return false;
  return beginning.size() == kBeginning && line.find(beginning, 1) != std::string_view::npos;
}

}  // namespace

LineReading reading_of_speed(std::optional<std::int64_t> index, std::optional<double> images_per_second,
                             std::string_view no_index, std::string_view no_speed) {
  if (!index) return {.problem = no_index};
  if (!images_per_second) return {.problem = no_speed};
  if (!(*images_per_second > 0) || !std::isfinite(*images_per_second))
    return {.problem = "has a speed that is not a positive number"};
  return {.index = *index, .value = *images_per_second};
}

std::string own_line(const LoggedInterval& interval, const RunSize& /*size*/) {
  return fmt::format(
      "{}-INFO: [Pass 0, train batch {}] \tloss {:.5f}, acc1 {:.5f}, acc5 {:.5f}, lr {:.5f}, elapse {:.6f} "
      "sec "
      "Epoch[0] Batch[{}]\tSpeed: {:.2f} samples/sec",
      interval.stamp, interval.last, interval.loss, interval.top1, interval.top5, interval.learning_rate,
      interval.seconds, interval.last + 1, interval.images_per_second);
}

std::string_view flaw_name(Flaw flaw) {
  constexpr std::array<std::string_view, 8> kNames{"unreadable", "wrongly named", "unfinished", "empty",
                                                   "truncated",  "malformed",     "duplicated", "mixed"};
  return kNames[static_cast<std::size_t>(flaw)];
}

double Dialect::round_average(double value) const {
  return rounding != Rounding::numpy ? round_decimal(value, 2) : round_numpy(value, 2);
}

double Dialect::round_median(double value) const {
  return medians_in_python() ? round_decimal(value, 2) : round_numpy(value, 2);
}

double Dialect::speedup(double median, double base_median) const {
  if (makes_a_table()) return round_median(median / base_median);
  return round_median(round_median(median) / round_median(base_median));
}

std::span<const Dialect* const> dialects() {
  static constexpr std::array<const Dialect*, 17> kDialects{
      &kPaddleSpeed,   &kPaddleTime,   &kMxnetRn50v1b, &kMxnetArcface, &kMxnetPartialFc,
      &kNgcMxnetSpeed, &kNgcMxnetTime, &kNgcTfSpeed,   &kNgcTfTime,    &kNgcPytorchTime,
      &kPytorch,       &kTf2Speed,     &kTf2Time,      &kMindspore,    &kOneflowCnn,
      &kOneflowFace,   &kPlsc};
  return kDialects;
}

const Dialect* find_dialect(std::string_view name) {
  for (const Dialect* dialect : dialects())
    if (dialect->name == name) return dialect;
  return nullptr;
}

const Dialect* recognise_dialect(const std::filesystem::path& file) {
  constexpr std::int64_t kHeaderLines = 100000;  // frameworks print their configuration first
  LineReader lines(file);
  while (const std::optional<std::string_view> line = lines.next()) {
    for (const Dialect* dialect : dialects()) {
      if (dialect->shares_lines_with_another) continue;
      if (const auto reading = dialect->read_line(*line, {.images_per_step = 1});
          reading && reading->problem.empty())
        return dialect;
    }
    if (lines.line_number() >= kHeaderLines) break;
  }
  return nullptr;
}

std::span<const double> after_warmup(const LogSeries& series, const Window& window) {
  const std::int64_t left_out = window.warmup / series.index_step * series.lines_per_index;
  return std::span(series.values).subspan(static_cast<std::size_t>(left_out));
}

std::string once_per_rank(const std::string& line, const RunSize& size) {
  std::string text = line;
  for (std::int64_t rank = 1; rank < size.nodes * size.devices_per_node; ++rank) text += "\n" + line;
  return text;
}

std::string window_text(const Dialect& dialect, const Window& window) {
  if (dialect.window_text) return dialect.window_text(window);
  const std::int64_t end = window.iterations / dialect.index_step * dialect.index_step;
  return fmt::format("iterations {} to {}", window.warmup + 1, end);
}

LogReading read_log(const Dialect& dialect, const std::filesystem::path& file, const Window& window,
                    const RunSize& size) {
  LogReading log;
  LogCheck check(dialect, window, size);
  ImagesPerStep images;
  std::string contradiction;
  try {
    LineReader lines(file);
    while (const std::optional<std::string_view> line = lines.next()) {
      if (dialect.contradiction && contradiction.empty()) contradiction = dialect.contradiction(*line, size);
      std::optional<LineReading> reading = dialect.read_line(*line, size);
      if (!reading) continue;
      if (reading->problem.empty() && is_two_lines(*line)) reading->problem = "is two lines in one";
      if (!lines.line_had_end() && reading->problem.empty() && is_torn(*line, dialect))
        reading->problem = "is cut off";
      check.take(*reading, lines.line_number());
      images.take(*line);
    }
    log.bytes = lines.bytes_read();
    log.hash = lines.hash();
  } catch (const Error& error) {
    log.defect = Defect{Flaw::unreadable, error.what()};
    return log;
  }
  log.defect = log.bytes == 0 ? Defect{Flaw::empty, "it is empty"} : check.defect();
  if (!log.defect) log.defect = images.defect(size.images_per_step);
  if (!contradiction.empty() && !log.defect) log.defect = Defect{Flaw::misnamed, contradiction};
  if (log.defect) return log;
  log.images_per_second = dialect.speed(check.series(), window, size);
  if (!dialect.makes_a_table()) log.images_per_second = dialect.round_average(log.images_per_second);
  if (!std::isfinite(log.images_per_second))
    log.defect = Defect{Flaw::malformed, dialect.has_stamps() ? "no time passes in the window"
                                                              : "its speeds are too large to average"};
  else if (dialect.caveat)
    log.caveat = dialect.caveat(check.series(), window, size);
  return log;
}

}  // namespace plumb
