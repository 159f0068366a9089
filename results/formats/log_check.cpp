// Reads a log with every check that it is whole.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "results/formats/dialect.h"
#include "results/formats/tokens.h"
#include "results/statistics/stalls.h"

namespace plumb {
namespace {

constexpr std::int64_t kHighestIndex = std::int64_t{1} << 62;
constexpr std::int64_t kLongestStep = 1'000'000;
constexpr std::int64_t kMostBack = 2;           // a rank's line may stand behind one of the next iteration
constexpr double kHalfAYear = 183.0 * 86400e6;  // microseconds

std::string at_line(std::int64_t number, std::string_view problem) {
  return fmt::format("line {} {}", number, problem);
}

// Whether a log is whole: its lines are taken one by one, and in the end there is a defect or a series of
// values.
class LogCheck {
 public:
  LogCheck(const Dialect& dialect, const Window& window, const RunSize& size)
      : dialect_(dialect), window_(window), size_(size) {}

  void take(LineReading reading, std::int64_t line_number) {
    ++series_.lines;
    if (reading.part == LinePart::index && reading.problem.empty()) {
      open_index_ = reading.index;
      return;
    }
    if (reading.part == LinePart::value) {
      if (open_index_ < 0 && reading.problem.empty())
        reading.problem = "comes before a line with its iteration";
      reading.index = open_index_;
    }
    if (!reading.problem.empty()) {
      if (unreadable_.empty()) unreadable_ = at_line(line_number, reading.problem);
      return;
    }
    if (expected_ < 0 && is_first(reading.index)) begin(reading.index);
    const std::int64_t most_back = dialect_.ranks_share_a_log ? std::min(indices_, kMostBack) : 0;
    for (std::int64_t back = 0; back <= most_back; ++back)
      if (reading.index == expected_ - back * series_.index_step)
        return take_value(reading.value, back, line_number);
    note_disorder(reading.index, line_number);
  }

  // To be called once, after the last line.
  std::optional<Note> defect() {
    if (series_.lines == 0)
      return Note{"empty", fmt::format("it has no line of the log format {}", dialect_.name)};
    if (repeats_ > 1)
      return Note{"mixed",
                  fmt::format("{} lines repeat earlier iterations, first {}: more than one run in one file",
                              repeats_, repeated_)};
    if (!unreadable_.empty()) return Note{"malformed", unreadable_};
    if (repeats_ == 1) return Note{"duplicated", "a second line for " + repeated_};
    if (!gap_.empty()) return Note{"truncated", gap_};
    if (!misfit_.empty()) return Note{"malformed", misfit_};
    if (indices_ < wanted_)
      return Note{"truncated", fmt::format("it has {} of the {} lines that --iters {} wants{}", indices_,
                                           wanted_, window_.iterations, how_to_read())};
    return uneven_ranks();
  }

  // The most that Window::iterations may be for this log.
  std::int64_t iterations() const {
    const std::int64_t step = series_.index_step;
    if (indices_ == 0) return 0;
    return window_.iterations / step * step + (indices_ - wanted_) * step;
  }

  const LogSeries& series() const { return series_; }

 private:
  // The options that read a log which is too short for its window: the window's warm-up, but at most half of
  // the log; empty if none do.
  std::string how_to_read() const {
    const Window whole{iterations(), std::min(window_.warmup, iterations() / 2)};
    const std::optional<Window> window = in_whole_lines(dialect_, whole, series_.index_step);
    return window ? fmt::format("; --iters {} --warmup {} read it", window->iterations, window->warmup) : "";
  }

  bool is_first(std::int64_t index) const {
    if (dialect_.step_is_first_index) return index > 0 && index <= kLongestStep;
    return index >= dialect_.lowest_first_index && index <= dialect_.highest_first_index &&
           index % dialect_.index_step == 0;
  }

  void begin(std::int64_t index) {
    const std::int64_t step = dialect_.step_is_first_index ? index : dialect_.index_step;
    series_.index_step = step;
    series_.first_index = expected_ = index;
    const std::int64_t wanted =
        dialect_.indices_wanted ? dialect_.indices_wanted(window_, index) : window_.iterations / step;
    wanted_ = std::max<std::int64_t>(1, wanted);
    if (dialect_.step_is_first_index &&
        (window_.warmup % step != 0 || window_.warmup / step >= window_.iterations / step ||
         (dialect_.has_stamps() && window_.warmup < step)))
      misfit_ =
          fmt::format("its lines are of {} iterations, and --warmup {} and --iters {} leave no whole lines",
                      step, window_.warmup, window_.iterations);
  }

  // The line is of the index `back` steps before the expected one; 0: of the expected one.
  void take_value(double value, std::int64_t back, std::int64_t line_number) {
    if (back == 0) {
      ++indices_;
      expected_ += series_.index_step;
    } else if (back > 1) {
      ++series_.late_lines;
    }
    check_stamp(value, back == 0, line_number);
    // Nothing is kept of indices outside the window, so that a long log takes no memory.
    const std::int64_t place = indices_ - std::max<std::int64_t>(back, 1);
    const bool is_wanted = place < wanted_;
    std::size_t behind = 0;  // values of later indices
    if (is_wanted) {
      const auto kept = static_cast<std::size_t>(place);
      if (lines_of_index_.size() <= kept) lines_of_index_.push_back(0);
      ++lines_of_index_[kept];
      for (std::size_t i = kept + 1; i < lines_of_index_.size(); ++i)
        behind += static_cast<std::size_t>(lines_of_index_[i]);
    }
    if (is_wanted || dialect_.has_no_end)
      series_.values.insert(series_.values.end() - static_cast<std::ptrdiff_t>(behind), value);
  }

  // The ranks that share a log have clocks of their own, so iterations are compared by their latest stamp.
  void check_stamp(double stamp, bool is_new_index, std::int64_t line_number) {
    if (!dialect_.has_stamps()) return;
    const auto falls = [&](double from, double to) {
      return to < from && !(dialect_.values == ValueKind::stamp_without_year && from - to > kHalfAYear);
    };
    if (!is_new_index) {
      stamp_ = std::max(stamp_, stamp);
      return;
    }
    const bool is_earlier = dialect_.ranks_share_a_log ? falls(stamp_before_, stamp_) : falls(stamp_, stamp);
    if (is_earlier && unreadable_.empty())
      unreadable_ =
          at_line(line_number, dialect_.ranks_share_a_log
                                   ? "comes after an iteration with earlier stamps than the one before"
                                   : "has an earlier stamp than the line before");
    stamp_before_ = stamp_;
    stamp_ = stamp;
  }

  void note_disorder(std::int64_t index, std::int64_t line_number) {
    if (expected_ < 0 || index > expected_ - series_.index_step) {
      if (gap_.empty()) gap_ = fmt::format("iterations before {} are missing at line {}", index, line_number);
      // The following lines are checked for repeats only.
      expected_ = index > kHighestIndex ? kHighestIndex : index + series_.index_step;
    } else if (const bool is_behind_a_gap = indices_ == 0 && dialect_.ranks_share_a_log;
               !is_behind_a_gap && ++repeats_ == 1) {
      repeated_ = fmt::format("iteration {} at line {}", index, line_number);
    }
  }

  // One line for every index, or one of each rank of the node or of all nodes.
  std::optional<Note> uneven_ranks() {
    const std::int64_t per_index = series_.lines_per_index = lines_of_index_.front();
    for (std::int64_t i = 0; i < wanted_; ++i)
      if (const std::int64_t lines = lines_of_index_[static_cast<std::size_t>(i)]; lines != per_index)
        return Note{lines < per_index ? "truncated" : "mixed",
                    fmt::format("iteration {} has {} lines, the first one {}",
                                series_.first_index + i * series_.index_step, lines, per_index)};
    if (per_index == 1 || per_index == size_.devices_per_node || per_index == size_.ranks())
      return std::nullopt;
    return Note{"mixed", fmt::format("every iteration has {} lines, neither one nor one of each rank of "
                                     "its node or of all nodes: more than one run in one file",
                                     per_index)};
  }

  const Dialect& dialect_;
  const Window& window_;
  const RunSize& size_;
  LogSeries series_;
  std::vector<std::int64_t> lines_of_index_;  // of the first `wanted_`
  std::int64_t indices_ = 0, wanted_ = 1, repeats_ = 0;
  std::int64_t expected_ = -1;           // index of the next line; negative before the first
  std::int64_t open_index_ = -1;         // of the last line that gave an index only
  double stamp_ = 0, stamp_before_ = 0;  // the latest of the last index, and of the one before
  std::string unreadable_, gap_, repeated_, misfit_;
};

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

  std::optional<Note> defect(double wanted) const {
    constexpr double kFarApart = 1.1;
    if (!tells_ || first_.lines == 0) return std::nullopt;
    if (second_.lines > 0) {
      if (second_.low < kFarApart * first_.high && first_.low < kFarApart * second_.high) return std::nullopt;
      return Note{"mixed",
                  fmt::format("its lines are of {} and of {} images per step: more than one run in one file",
                              first_.text(), second_.text())};
    }
    const bool fits = wanted >= first_.low && wanted <= first_.high;
    if (fits || !(first_.low < 1e15)) return std::nullopt;
    return Note{"wrongly named",
                fmt::format("its lines are of {} images per step, its name and folder say {}", first_.text(),
                            std::llround(wanted))};
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

// Steps of the window whose lines give a time or a speed, to find stalls among them.
class StepTimes {
 public:
  StepTimes(const Window& window, const RunSize& size) : window_(window), size_(size) {}

  void take(const LineReading& reading, std::string_view line) {
    if (reading.part != LinePart::all || !reading.problem.empty()) return;
    if (first_index_ < 0) first_index_ = reading.index;
    const std::int64_t iteration = reading.index - first_index_;
    if (iteration < window_.warmup || iteration >= window_.iterations) return;
    std::optional<double> seconds = elapse_seconds(line);
    if (const auto speed = samples_per_second(line); !seconds && speed && *speed > 0)
      seconds = size_.images_per_step / *speed;
    if (!seconds || !(*seconds > 0) || !std::isfinite(*seconds)) return;
    seconds_.push_back(*seconds);
    indices_.push_back(reading.index);
  }

  std::string stall() const {
    const Stalls stalls = find_stalls(seconds_);
    return stalls.count > 0 ? stall_text(stalls, indices_[stalls.longest]) : "";
  }

 private:
  const Window& window_;
  const RunSize& size_;
  std::int64_t first_index_ = -1;
  std::vector<double> seconds_;
  std::vector<std::int64_t> indices_;
};

// The first and last losses that lines tell, as "loss 6.9", "loss: 6.9" or "loss=6.9".
class Losses {
 public:
  void take(std::string_view line) {
    std::optional<std::string_view> rest = text_behind(line, "loss");
    if (!rest) return;
    rest->remove_prefix(std::min(rest->find_first_not_of(" :="), rest->size()));
    const std::optional<double> loss = python_float(rest->substr(0, rest->find_first_of(", \t")));
    if (!loss) return;
    if (!first_) first_ = loss;
    last_ = *loss;
  }

  std::string divergence() const { return first_ ? divergence_text(*first_, last_) : ""; }

 private:
  std::optional<double> first_;
  double last_ = 0;
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

LogReading read_log(const Dialect& dialect, const std::filesystem::path& file, const Window& window,
                    const RunSize& size) {
  LogReading log;
  LogCheck check(dialect, window, size);
  ImagesPerStep images;
  StepTimes times(window, size);
  Losses losses;
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
      times.take(*reading, *line);
      losses.take(*line);
    }
    log.bytes = lines.bytes_read();
    log.hash = lines.hash();
  } catch (const Error& error) {
    log.defect = Note{"unreadable", error.what()};
    return log;
  }
  log.defect = log.bytes == 0 ? Note{"empty", "it is empty"} : check.defect();
  log.iterations = check.iterations();
  log.iterations_per_line = check.series().index_step;
  if (!log.defect) log.defect = images.defect(size.images_per_step);
  if (!contradiction.empty() && !log.defect) log.defect = Note{"wrongly named", contradiction};
  if (log.defect) return log;
  log.images_per_second = dialect.speed(check.series(), window, size);
  if (!dialect.makes_a_table()) log.images_per_second = dialect.round_average(log.images_per_second);
  if (!std::isfinite(log.images_per_second))
    log.defect = Note{"malformed", dialect.has_stamps() ? "no time passes in the window"
                                                        : "its speeds are too large to average"};
  else if (dialect.caveat)
    log.caveat = dialect.caveat(check.series(), window, size);
  log.stall = times.stall();
  log.divergence = losses.divergence();
  return log;
}

}  // namespace plumb
