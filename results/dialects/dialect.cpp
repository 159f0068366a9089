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
  LogCheck(const Dialect& dialect, const Window& window) : dialect_(dialect), window_(window) {}

  void take(const LineReading& reading, std::int64_t line_number) {
    ++lines_;
    if (!reading.problem.empty()) {
      if (unreadable_.empty()) unreadable_ = at_line(line_number) + std::string(reading.problem);
    } else if (expected_ < 0 ? reading.index > dialect_.highest_first_index : reading.index > expected_) {
      if (gap_.empty())
        gap_ = "iterations before " + std::to_string(reading.index) + " are missing at line " +
               std::to_string(line_number);
      expected_ = reading.index + 1;
    } else if (expected_ >= 0 && reading.index < expected_) {
      if (++repeats_ == 1)
        repeated_ = "iteration " + std::to_string(reading.index) + " at line " + std::to_string(line_number);
    } else {
      expected_ = reading.index + 1;
      take_value(reading.value, line_number);
    }
  }

  std::optional<Defect> defect() const {
    if (lines_ == 0) return Defect{Flaw::empty, "it has no line of dialect " + std::string(dialect_.name)};
    if (repeats_ > 1)
      return Defect{Flaw::mixed, std::to_string(repeats_) + " lines repeat earlier iterations, first " +
                                     repeated_ + ": more than one run in one file"};
    if (!unreadable_.empty()) return Defect{Flaw::malformed, unreadable_};
    if (repeats_ == 1) return Defect{Flaw::duplicated, "a second line for " + repeated_};
    if (!gap_.empty()) return Defect{Flaw::truncated, gap_};
    const std::int64_t count = static_cast<std::int64_t>(values_.size());
    if (count < window_.iterations)
      return Defect{Flaw::truncated, "it has " + std::to_string(count) + " of the " +
                                         std::to_string(window_.iterations) +
                                         " iterations that --iters wants"};
    return std::nullopt;
  }

  const std::vector<double>& values() const { return values_; }

 private:
  static std::string at_line(std::int64_t number) { return "line " + std::to_string(number) + " "; }

  void take_value(double value, std::int64_t line_number) {
    if (dialect_.values_are_stamps && value < last_value_ && unreadable_.empty())
      unreadable_ = at_line(line_number) + "has an earlier stamp than the line before";
    last_value_ = value;
    if (static_cast<std::int64_t>(values_.size()) < window_.iterations) values_.push_back(value);
  }

  const Dialect& dialect_;
  const Window& window_;
  std::vector<double> values_;
  std::int64_t lines_ = 0, repeats_ = 0;
  std::int64_t expected_ = -1;  // index of the next line; negative before the first
  double last_value_ = 0;
  std::string unreadable_, gap_, repeated_;
};

}  // namespace

std::string_view flaw_name(Flaw flaw) {
  constexpr std::array<std::string_view, 8> kNames{"unreadable", "wrongly named", "unfinished", "empty",
                                                   "truncated",  "malformed",     "duplicated", "mixed"};
  return kNames[static_cast<std::size_t>(flaw)];
}

double Dialect::round_average(double value) const {
  return averages_in_python ? round_decimal(value, 2) : round_numpy(value, 2);
}

std::span<const Dialect* const> dialects() {
  static constexpr std::array<const Dialect*, 3> kDialects{&kPaddleSpeed, &kPaddleTime, &kMxnetRn50v1b};
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
      if (const auto reading = dialect->read_line(*line, 1); reading && reading->problem.empty())
        return dialect;
    }
    if (lines.line_number() >= kHeaderLines) break;
  }
  return nullptr;
}

LogReading read_log(const Dialect& dialect, const std::filesystem::path& file, const Window& window,
                    double images_per_step) {
  LogReading log;
  LogCheck check(dialect, window);
  ImagesPerStep images;
  try {
    LineReader lines(file);
    while (const std::optional<std::string_view> line = lines.next()) {
      const std::optional<LineReading> reading = dialect.read_line(*line, images_per_step);
      if (!reading) continue;
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
  if (const auto other = images.other_than(images_per_step); other && !log.defect)
    log.defect = Defect{Flaw::misnamed, "its lines are of " + std::to_string(*other) +
                                            " images per step, its name and folder say " +
                                            std::to_string(std::llround(images_per_step))};
  if (log.defect) return log;
  log.images_per_second = dialect.round_average(dialect.speed(check.values(), window, images_per_step));
  if (!std::isfinite(log.images_per_second))
    log.defect = Defect{Flaw::malformed, "no time passes in the window"};
  return log;
}

}  // namespace plumb
