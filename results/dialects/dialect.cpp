#include "results/dialects/dialect.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/error.h"
#include "results/dialects/tokens.h"
#include "results/statistics.h"

namespace plumb {
namespace {

// Lines that give both a time and a speed tell how many images a step had: product of the two. If all lines
// agree on a number that isn't the one of the file's name and folder, the log belongs elsewhere.
class ImagesPerStep {
 public:
  void take(std::string_view line) {
    const std::optional<double> seconds = elapse_seconds(line), images_per_second = samples_per_second(line);
    if (!seconds || !images_per_second || !(*seconds > 0) || !(*images_per_second > 0)) return;
    const double images = *seconds * *images_per_second;
    // Two decimals of the speed and six of the time are printed.
    const double slack = images * (0.01 + 0.005 / *images_per_second + 5e-7 / *seconds);
    highest_low_ = std::max(highest_low_, images - slack);
    lowest_high_ = std::min(lowest_high_, images + slack);
    ++lines_;
  }

  // The number of images that the lines agree on, if it isn't `wanted`.
  std::optional<std::int64_t> other_than(double wanted) const {
    if (lines_ == 0 || highest_low_ > lowest_high_) return std::nullopt;
    if (wanted >= highest_low_ && wanted <= lowest_high_) return std::nullopt;
    const double images = std::rint((highest_low_ + lowest_high_) / 2);
    if (!(images < 1e15)) return std::nullopt;
    return static_cast<std::int64_t>(images);
  }

 private:
  std::int64_t lines_ = 0;
  double highest_low_ = 0, lowest_high_ = HUGE_VAL;
};

// Takes a log's lines one by one; knows at the end whether it is whole.
class LogCheck {
 public:
  LogCheck(const Dialect& dialect, const Window& window, const RunSize& size)
      : dialect_(dialect), window_(window), size_(size) {}

  void take(const LineReading& reading, std::int64_t line_number) {
    ++series_.lines;
    if (!reading.problem.empty()) {
      if (unreadable_.empty()) unreadable_ = at_line(line_number) + std::string(reading.problem);
      return;
    }
    if (expected_ < 0 && is_first(reading.index)) begin(reading.index);
    const bool is_of_another_rank =
        dialect_.ranks_share_a_log && indices_ > 0 && reading.index == expected_ - dialect_.index_step;
    if (reading.index == expected_ || is_of_another_rank) {
      if (!is_of_another_rank) ++indices_;
      count_line();
      expected_ = reading.index + dialect_.index_step;
      take_value(reading.value, line_number);
    } else {
      note_disorder(reading.index, line_number);
    }
  }

  // To be called once, after the last line.
  std::optional<Defect> defect() {
    if (series_.lines == 0)
      return Defect{Flaw::empty, "it has no line of dialect " + std::string(dialect_.name)};
    if (repeats_ > 1)
      return Defect{Flaw::mixed, std::to_string(repeats_) + " lines repeat earlier iterations, first " +
                                     repeated_ + ": more than one run in one file"};
    if (!unreadable_.empty()) return Defect{Flaw::malformed, unreadable_};
    if (repeats_ == 1) return Defect{Flaw::duplicated, "a second line for " + repeated_};
    if (!gap_.empty()) return Defect{Flaw::truncated, gap_};
    if (indices_ < wanted_)
      return Defect{Flaw::truncated, "it has " + std::to_string(indices_) + " of the " +
                                         std::to_string(wanted_) + " lines that --iters " +
                                         std::to_string(window_.iterations) + " wants"};
    return uneven_ranks();
  }

  const LogSeries& series() const { return series_; }

 private:
  static std::string at_line(std::int64_t number) { return "line " + std::to_string(number) + " "; }

  bool is_first(std::int64_t index) const {
    return index <= dialect_.highest_first_index && index % dialect_.index_step == 0;
  }

  void begin(std::int64_t index) {
    series_.first_index = expected_ = index;
    const std::int64_t wanted = dialect_.indices_wanted ? dialect_.indices_wanted(window_, index)
                                                        : window_.iterations / dialect_.index_step;
    wanted_ = std::max<std::int64_t>(1, wanted);
  }

  // Of indices that the window doesn't want, so that a long log takes no memory, nothing is kept.
  void count_line() {
    if (indices_ > wanted_) return;
    if (static_cast<std::int64_t>(lines_of_index_.size()) < indices_) lines_of_index_.push_back(0);
    ++lines_of_index_.back();
  }

  void note_disorder(std::int64_t index, std::int64_t line_number) {
    if (index >= expected_) {
      if (gap_.empty())
        gap_ = "iterations before " + std::to_string(index) + " are missing at line " +
               std::to_string(line_number);
      // What follows is looked at for repeats only.
      expected_ = index > kHighestIndex ? kHighestIndex : index + dialect_.index_step;
    } else if (const bool is_behind_a_gap = indices_ == 0 && dialect_.ranks_share_a_log;
               !is_behind_a_gap && ++repeats_ == 1) {
      repeated_ = "iteration " + std::to_string(index) + " at line " + std::to_string(line_number);
    }
  }

  void take_value(double value, std::int64_t line_number) {
    if (dialect_.values_are_stamps && value < last_value_ && unreadable_.empty())
      unreadable_ = at_line(line_number) + "has an earlier stamp than the line before";
    last_value_ = value;
    if (dialect_.has_no_end || indices_ <= wanted_) series_.values.push_back(value);
  }

  // One line for every index, or one of each rank of the node.
  std::optional<Defect> uneven_ranks() {
    series_.lines_per_index = lines_of_index_.front();
    for (std::int64_t i = 0; i < wanted_; ++i)
      if (const std::int64_t lines = lines_of_index_[static_cast<std::size_t>(i)];
          lines != series_.lines_per_index)
        return Defect{lines < series_.lines_per_index ? Flaw::truncated : Flaw::mixed,
                      "iteration " + std::to_string(series_.first_index + i * dialect_.index_step) + " has " +
                          std::to_string(lines) + " lines, the first one " +
                          std::to_string(series_.lines_per_index)};
    if (series_.lines_per_index == 1 || series_.lines_per_index == size_.devices_per_node)
      return std::nullopt;
    return Defect{Flaw::mixed, "every iteration has " + std::to_string(series_.lines_per_index) +
                                   " lines, neither one nor one of each rank of its node: more than one " +
                                   "run in one file"};
  }

  static constexpr std::int64_t kHighestIndex = std::int64_t{1} << 62;

  const Dialect& dialect_;
  const Window& window_;
  const RunSize& size_;
  LogSeries series_;
  std::vector<std::int64_t> lines_of_index_;  // of the first `wanted_`
  std::int64_t indices_ = 0, wanted_ = 1, repeats_ = 0;
  std::int64_t expected_ = -1;  // index of the next line; negative before the first
  double last_value_ = 0;
  std::string unreadable_, gap_, repeated_;
};

// A last line without an end whose value may have lost digits.
bool is_torn(std::string_view line, const Dialect& dialect) {
  const std::size_t decimals = dialect.decimals_at_line_end;
  if (decimals == 0) return false;
  const std::size_t before = line.find_last_not_of("0123456789");
  return before == std::string_view::npos || line[before] != '.' || line.size() - before - 1 < decimals;
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

std::string_view flaw_name(Flaw flaw) {
  constexpr std::array<std::string_view, 8> kNames{"unreadable", "wrongly named", "unfinished", "empty",
                                                   "truncated",  "malformed",     "duplicated", "mixed"};
  return kNames[static_cast<std::size_t>(flaw)];
}

double Dialect::round_average(double value) const {
  return averages_in_python ? round_decimal(value, 2) : round_numpy(value, 2);
}

std::span<const Dialect* const> dialects() {
  static constexpr std::array<const Dialect*, 7> kDialects{
      &kPaddleSpeed, &kPaddleTime, &kMxnetRn50v1b, &kMxnetArcface, &kMxnetPartialFc, &kOneflowFace, &kPlsc};
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
      if (dialect->values_are_stamps) continue;
      if (const auto reading = dialect->read_line(*line, {.images_per_step = 1});
          reading && reading->problem.empty())
        return dialect;
    }
    if (lines.line_number() >= kHeaderLines) break;
  }
  return nullptr;
}

std::span<const double> after_warmup(const LogSeries& series, const Window& window, std::int64_t index_step) {
  const std::int64_t left_out = window.warmup / index_step * series.lines_per_index;
  return std::span(series.values).subspan(static_cast<std::size_t>(left_out));
}

std::string window_text(const Dialect& dialect, const Window& window) {
  if (dialect.window_text) return dialect.window_text(window);
  const std::int64_t end = window.iterations / dialect.index_step * dialect.index_step;
  return "iterations " + std::to_string(window.warmup + 1) + " to " + std::to_string(end);
}

LogReading read_log(const Dialect& dialect, const std::filesystem::path& file, const Window& window,
                    const RunSize& size) {
  LogReading log;
  LogCheck check(dialect, window, size);
  ImagesPerStep images;
  try {
    LineReader lines(file);
    while (const std::optional<std::string_view> line = lines.next()) {
      std::optional<LineReading> reading = dialect.read_line(*line, size);
      if (!reading) continue;
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
  if (const auto other = images.other_than(size.images_per_step); other && !log.defect)
    log.defect = Defect{Flaw::misnamed, "its lines are of " + std::to_string(*other) +
                                            " images per step, its name and folder say " +
                                            std::to_string(std::llround(size.images_per_step))};
  if (log.defect) return log;
  log.images_per_second = dialect.round_average(dialect.speed(check.series(), window, size));
  if (!std::isfinite(log.images_per_second))
    log.defect = Defect{Flaw::malformed, dialect.values_are_stamps ? "no time passes in the window"
                                                                   : "its speeds are too large to average"};
  else if (dialect.caveat)
    log.caveat = dialect.caveat(check.series(), window, size);
  return log;
}

}  // namespace plumb
