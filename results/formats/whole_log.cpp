#include "results/formats/whole_log.h"

#include <algorithm>

#include "base/paths.h"
#include "base/text.h"

namespace plumb {
namespace {

constexpr std::int64_t kLongestStep = 1'000'000;
constexpr std::int64_t kHighestIndex = std::int64_t{1} << 40;
constexpr std::int64_t kMostBack = 2;        // a rank's line may stand behind one of the next iteration
constexpr double kHalfAYear = 183.0 * kDay;  // of a clock without a year

constexpr const char* kBlocks =
    ", or ranks that write in blocks; have each write line by line (python -u) or under its name (torchrun "
    "--tee 3, mpirun --tag-output, srun --label)";

std::string at_line(std::int64_t number, std::string_view problem) {
  return fmt::format("line {} {}", number, problem);
}

}  // namespace

void WholeLog::take(LineReading reading, std::string_view line, std::int64_t line_number) {
  if (reading.fit == Fit::near && unreadable_.empty())
    unreadable_ = at_line(line_number, fmt::format("has '{}' where a number is expected",
                                                   shortened(printable(std::string(reading.misfit)), 40)));
  if (reading.fit != Fit::whole) {
    if (unlike_.empty()) unlike_ = fmt::format("; line {} is not like '{}'", line_number, format_.example);
    return;
  }
  ++series_.lines;
  if (!reading.has_value) {
    open_ = reading;
    return;
  }
  if (!reading.has_index) {
    if (open_.fit == Fit::none && reading.problem.empty())
      reading.problem = "comes before a line with its iteration";
    reading.epoch = open_.epoch;
    reading.iteration = open_.iteration;
    reading.step = open_.step;
  }
  if (!reading.problem.empty()) {
    if (unreadable_.empty()) unreadable_ = at_line(line_number, reading.problem);
    return;
  }
  if (epochs_.empty())
    begin(reading);
  else if (series_.index_step == 0)
    find_step(reading, line_number);
  if (!gap_.empty()) return take_after_gap(reading, line_number);
  if (format_.repeats_lines && is_further_metric(reading, line)) return;
  take_indexed(reading, line_number);
  if (format_.repeats_lines) {
    taken_ = {std::string(line), reading.writer, reading.value};
  }
}

// The line before said the same of the same iteration, but for what is behind the speed.
bool WholeLog::is_further_metric(const LineReading& reading, std::string_view line) const {
  return last_ == Position{reading.epoch, reading.iteration} && reading.writer == taken_.writer &&
         reading.value == taken_.value && line != taken_.text;
}

void WholeLog::take_indexed(const LineReading& reading, std::int64_t line_number) {
  const std::optional<std::int64_t> index = index_of(reading);
  if (!index) return note_repeat(reading, line_number);
  if (*index > indices_) {
    note_gap(reading, line_number);
    last_ = {reading.epoch, reading.iteration};
    return;
  }
  if (reading.writer.empty()) {
    const std::int64_t most_back = format_.every_rank_writes ? std::min(indices_, kMostBack) : 0;
    if (*index < indices_ - most_back) return note_repeat(reading, line_number);
  } else {
    std::int64_t& next = next_of_[reading.writer];
    if (*index < next) return note_repeat(reading, line_number);
    if (*index > next) {
      gap_ = fmt::format("iterations before {} of rank {} are missing at line {}", reading.iteration,
                         reading.writer, line_number);
      return;
    }
    ++next;
  }
  take_value(reading, *index, line_number);
}

// Lines behind a gap are checked for repeats only.
void WholeLog::take_after_gap(const LineReading& reading, std::int64_t line_number) {
  const std::int64_t back = format_.every_rank_writes ? kMostBack * series_.index_step : -1;
  const bool repeats = reading.epoch < last_.epoch ||
                       (reading.epoch == last_.epoch && reading.iteration < last_.iteration - back);
  if (repeats)
    note_repeat(reading, line_number);
  else
    last_ = std::max(last_, Position{reading.epoch, reading.iteration});
}

void WholeLog::begin(const LineReading& reading) {
  epochs_.push_back({reading.epoch, reading.iteration, 0});
  series_.first_index = reading.iteration;
  series_.index_step = 0;
  if (reading.step > 0) set_step(reading.step);
}

// Where lines don't say how many iterations they are of, the first two do.
void WholeLog::find_step(const LineReading& reading, std::int64_t line_number) {
  const Epoch& first = epochs_.front();
  second_ = {reading.iteration, line_number};
  if (reading.epoch != first.number)
    set_step(reading.iteration);
  else if (reading.iteration != first.first_iteration)
    set_step(reading.iteration - first.first_iteration);
}

void WholeLog::set_step(std::int64_t step) {
  step = std::clamp<std::int64_t>(step, 1, kLongestStep);
  series_.index_step = step;
  series_.lead = format_.lead(series_.first_index, step);
  wanted_ = std::max<std::int64_t>(1, series_.lead + window_.iterations / step);
  // Without an end, the warm-up is of whole lines, and a line behind it is enough.
  if (format_.has_no_end) wanted_ = std::max(wanted_, (window_.warmup + step - 1) / step + 1);
  if (step != format_.index_step && !format_.has_no_end &&
      (window_.warmup % step != 0 || window_.warmup / step >= window_.iterations / step ||
       (format_.stamps && window_.warmup < step)))
    misfit_ =
        fmt::format("its lines are of {} iterations, and --warmup {} and --iters {} leave no whole lines",
                    step, window_.warmup, window_.iterations);
  if (step != 1 && format_.needs_every_iteration())
    misfit_ = fmt::format(
        "it has a line for every {} iterations, and each gives the time of one; print every iteration "
        "(PyTorch: -p 1)",
        step);
}

std::optional<std::int64_t> WholeLog::index_of(const LineReading& reading) {
  const std::int64_t step = std::max<std::int64_t>(series_.index_step, 1);
  const auto is_known = [&](const Epoch& epoch) { return epoch.number == reading.epoch; };
  const auto known = std::find_if(epochs_.rbegin(), epochs_.rend(), is_known);
  if (known != epochs_.rend()) {
    const std::int64_t offset = reading.iteration - known->first_iteration;
    if (offset < 0) return std::nullopt;
    const std::int64_t index = std::min(known->first_index + offset / step, kHighestIndex);
    const bool is_between = offset % step != 0 && reading.iteration > last_.iteration;
    return is_between ? std::max(index, indices_) + 1 : index;
  }
  const Epoch& last = epochs_.back();
  if (reading.epoch < last.number) return std::nullopt;
  const bool goes_on = reading.iteration == last.first_iteration + (indices_ - last.first_index) * step;
  const bool is_next = reading.epoch == last.number + 1 && (reading.iteration <= step || goes_on);
  epochs_.push_back({reading.epoch, reading.iteration, is_next ? indices_ : indices_ + 1});
  return epochs_.back().first_index;
}

void WholeLog::take_value(const LineReading& reading, std::int64_t index, std::int64_t line_number) {
  const bool is_new_index = index == indices_;
  if (is_new_index) {
    ++indices_;
    last_ = {reading.epoch, reading.iteration};
  }
  if (format_.stamps && reading.writer.empty()) check_stamp(reading.value, is_new_index, line_number);
  // Nothing is kept of indices outside the window, so that a long log takes no memory.
  const bool is_wanted = index < wanted_;
  std::size_t behind = 0;  // values of later indices
  if (is_wanted) {
    const auto kept = static_cast<std::size_t>(index);
    if (lines_of_index_.size() <= kept) lines_of_index_.push_back(0);
    ++lines_of_index_[kept];
    for (std::size_t i = kept + 1; i < lines_of_index_.size(); ++i)
      behind += static_cast<std::size_t>(lines_of_index_[i]);
  }
  if (is_wanted || format_.has_no_end)
    series_.values.insert(series_.values.end() - static_cast<std::ptrdiff_t>(behind), reading.value);
  if (is_wanted && reading.mean)
    series_.means.insert(series_.means.end() - static_cast<std::ptrdiff_t>(behind), *reading.mean);
}

// The ranks that share a log have clocks of their own, so iterations are compared by their latest stamp.
void WholeLog::check_stamp(double stamp, bool is_new_index, std::int64_t line_number) {
  const bool goes_around = format_.clock_goes_around();
  const auto falls = [&](double from, double to) {
    return to < from && !(goes_around && from - to > kHalfAYear);
  };
  if (!is_new_index) {
    stamp_ = std::max(stamp_, stamp);
    return;
  }
  const bool is_earlier = format_.every_rank_writes ? falls(stamp_before_, stamp_) : falls(stamp_, stamp);
  if (is_earlier && unreadable_.empty())
    unreadable_ =
        at_line(line_number, format_.every_rank_writes
                                 ? "comes after an iteration with earlier stamps than the one before"
                                 : "has an earlier stamp than the line before");
  stamp_before_ = stamp_;
  stamp_ = stamp;
}

// A third line between what the first two make of the step says that the second one wasn't the next.
void WholeLog::note_gap(const LineReading& reading, std::int64_t line_number) {
  if (!gap_.empty()) return;
  if (reading.epoch != last_.epoch) {
    gap_ = reading.epoch > last_.epoch + 1
               ? fmt::format("epochs between {} and {} are missing at line {}", last_.epoch, reading.epoch,
                             line_number)
               : fmt::format("the end of epoch {} or the start of epoch {} is missing at line {}",
                             last_.epoch, reading.epoch, line_number);
    return;
  }
  const std::int64_t iteration = reading.iteration;
  const bool is_third = indices_ == 2 && second_.line > 0 && epochs_.size() == 1 &&
                        iteration - second_.iteration < series_.index_step;
  gap_ = fmt::format("iterations before {} are missing at line {}", is_third ? second_.iteration : iteration,
                     is_third ? second_.line : line_number);
}

void WholeLog::note_repeat(const LineReading& reading, std::int64_t line_number) {
  if (++repeats_ == 1) repeated_ = fmt::format("iteration {} at line {}", reading.iteration, line_number);
}

std::optional<Note> WholeLog::defect() {
  if (series_.index_step == 0) set_step(format_.index_step > 0 ? format_.index_step : series_.first_index);
  if (series_.lines == 0)
    return Note{"empty", fmt::format("it has no line of the log format {}{}", format_.name, unlike_)};
  if (repeats_ > 1)
    return Note{
        "mixed",
        fmt::format("{} lines repeat earlier iterations, first {}: more than one run in one file{}", repeats_,
                    repeated_,
                    format_.every_rank_writes && size_.ranks() > 1 && next_of_.empty() ? kBlocks : "")};
  if (!unreadable_.empty()) return Note{"malformed", unreadable_};
  if (repeats_ == 1) return Note{"duplicated", "a second line for " + repeated_};
  if (!misfit_.empty() && gap_.empty()) return Note{"malformed", misfit_};
  if (!gap_.empty()) return Note{"truncated", gap_ + unlike_};
  if (indices_ < wanted_)
    return Note{"truncated", fmt::format("it has {} of the {} lines that --iters {} wants{}{}", indices_,
                                         wanted_, window_.iterations, how_to_read(), unlike_)};
  return uneven_ranks();
}

std::int64_t WholeLog::iterations() const {
  const std::int64_t step = series_.index_step;
  if (indices_ == 0) return 0;
  return window_.iterations / step * step + (indices_ - wanted_) * step;
}

// The options that read a log which is too short for its window: the window's warm-up, but at most half of
// the log; empty if none do.
std::string WholeLog::how_to_read() const {
  const Window whole{iterations(), std::min(window_.warmup, iterations() / 2)};
  const std::optional<Window> window = in_whole_lines(format_, whole, series_.index_step);
  return window ? fmt::format("; --iters {} --warmup {} read it", window->iterations, window->warmup) : "";
}

// One line for every index, or one of each rank of the node or of all nodes.
std::optional<Note> WholeLog::uneven_ranks() {
  const std::int64_t per_index = series_.lines_per_index = lines_of_index_.front();
  for (std::int64_t i = 0; i < wanted_; ++i)
    if (const std::int64_t lines = lines_of_index_[static_cast<std::size_t>(i)]; lines != per_index)
      return Note{lines < per_index ? "truncated" : "mixed",
                  fmt::format("iteration {} has {} lines, the first one {}{}",
                              series_.first_index + i * series_.index_step, lines, per_index, unlike_)};
  const auto writers = static_cast<std::int64_t>(next_of_.size());
  if (per_index == 1 || per_index == writers || per_index == size_.devices_per_node ||
      per_index == size_.ranks())
    return std::nullopt;
  return Note{"mixed", fmt::format("every iteration has {} lines, neither one nor one of each rank of its "
                                   "node or of all nodes: more than one run in one file",
                                   per_index)};
}

}  // namespace plumb
