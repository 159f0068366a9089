#include "results/dialects/log_check.h"

#include <algorithm>

#include "base/text.h"

namespace plumb {
namespace {

constexpr std::int64_t kHighestIndex = std::int64_t{1} << 62;
constexpr std::int64_t kLongestStep = 1'000'000;
constexpr std::int64_t kMostBack = 2;           // a rank's line may stand behind one of the next iteration
constexpr double kHalfAYear = 183.0 * 86400e6;  // microseconds

std::string at_line(std::int64_t number, std::string_view problem) {
  return fmt::format("line {} {}", number, problem);
}

}  // namespace

void LogCheck::take(LineReading reading, std::int64_t line_number) {
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

std::optional<Defect> LogCheck::defect() {
  if (series_.lines == 0)
    return Defect{Flaw::empty, fmt::format("it has no line of dialect {}", dialect_.name)};
  if (repeats_ > 1)
    return Defect{Flaw::mixed,
                  fmt::format("{} lines repeat earlier iterations, first {}: more than one run in one file",
                              repeats_, repeated_)};
  if (!unreadable_.empty()) return Defect{Flaw::malformed, unreadable_};
  if (repeats_ == 1) return Defect{Flaw::duplicated, "a second line for " + repeated_};
  if (!gap_.empty()) return Defect{Flaw::truncated, gap_};
  if (!misfit_.empty()) return Defect{Flaw::malformed, misfit_};
  if (indices_ < wanted_)
    return Defect{Flaw::truncated, fmt::format("it has {} of the {} lines that --iters {} wants", indices_,
                                               wanted_, window_.iterations)};
  return uneven_ranks();
}

bool LogCheck::is_first(std::int64_t index) const {
  if (dialect_.step_is_first_index) return index > 0 && index <= kLongestStep;
  return index >= dialect_.lowest_first_index && index <= dialect_.highest_first_index &&
         index % dialect_.index_step == 0;
}

void LogCheck::begin(std::int64_t index) {
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

void LogCheck::take_value(double value, std::int64_t back, std::int64_t line_number) {
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
void LogCheck::check_stamp(double stamp, bool is_new_index, std::int64_t line_number) {
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

void LogCheck::note_disorder(std::int64_t index, std::int64_t line_number) {
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
std::optional<Defect> LogCheck::uneven_ranks() {
  const std::int64_t per_index = series_.lines_per_index = lines_of_index_.front();
  for (std::int64_t i = 0; i < wanted_; ++i)
    if (const std::int64_t lines = lines_of_index_[static_cast<std::size_t>(i)]; lines != per_index)
      return Defect{lines < per_index ? Flaw::truncated : Flaw::mixed,
                    fmt::format("iteration {} has {} lines, the first one {}",
                                series_.first_index + i * series_.index_step, lines, per_index)};
  if (per_index == 1 || per_index == size_.devices_per_node ||
      per_index == size_.nodes * size_.devices_per_node)
    return std::nullopt;
  return Defect{Flaw::mixed, fmt::format("every iteration has {} lines, neither one nor one of each rank of "
                                         "its node or of all nodes: more than one "
                                         "run in one file",
                                         per_index)};
}

}  // namespace plumb
