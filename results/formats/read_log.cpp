#include "results/formats/read_log.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/paths.h"
#include "base/text.h"
#include "results/formats/line_reader.h"
#include "results/formats/whole_log.h"
#include "results/statistics/stalls.h"

namespace plumb {
namespace {

// Lines that give both a time and a speed tell how many images a step had: product of the two. If all lines
// agree on a number that isn't the one of the file's name and folder, the log belongs elsewhere; if each has
// one of two numbers that are far apart, two runs are in it.
class ImagesPerStep {
 public:
  void take(std::string_view line) {
    Captured told;
    if (match_shape("elapse {seconds} sec*Speed: {value} samples/sec", line, told) != Fit::whole) return;
    const double seconds = *told.seconds, images_per_second = *told.value;
    if (!(seconds > 0) || !(images_per_second > 0)) return;
    const double images = seconds * images_per_second;
    // Two decimals of the speed and six of the time are printed.
    const double slack = images * (0.01 + 0.005 / images_per_second + 5e-7 / seconds);
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

// The first and last losses that lines tell; a loss that is none counts as the last one.
class Losses {
 public:
  explicit Losses(std::string_view mark) : mark_(mark) {}

  void take(std::string_view line, std::optional<double> loss) {
    const std::size_t at = line.find(mark_);
    if (!loss && at != std::string_view::npos) {
      std::string_view rest = line.substr(at + mark_.size());
      rest.remove_prefix(std::min(rest.find_first_not_of(" :="), rest.size()));
      loss = take_number(rest);
    }
    if (!loss) return;
    if (!first_) first_ = loss;
    if (std::isfinite(last_)) last_ = *loss;
  }

  std::string divergence() const { return first_ ? divergence_text(*first_, last_) : ""; }

 private:
  std::string_view mark_;
  std::optional<double> first_;
  double last_ = 0;
};

// N of a line "WORD = N".
std::optional<std::int64_t> number_behind(std::string_view word, std::string_view line) {
  if (word.empty() || !line.starts_with(word)) return std::nullopt;
  line.remove_prefix(word.size());
  if (!line.starts_with(" = ")) return std::nullopt;
  line.remove_prefix(3);
  return take_whole_number(line);
}

// Where a log says a size that isn't the one of its name and folder.
std::string contradiction(const SizeWords& words, std::string_view line, const RunSize& size) {
  const std::int64_t batch = std::llround(size.images_per_step / static_cast<double>(size.ranks()));
  for (const auto& [word, wanted] :
       {std::pair(words.batch_per_device, batch), std::pair(words.devices_per_node, size.devices_per_node),
        std::pair(words.nodes, size.nodes)})
    if (const auto value = number_behind(word, line); value && *value != wanted)
      return fmt::format("{} is {} in it and {} by its name and folder", word, *value, wanted);
  return "";
}

// A last line without an end whose value may have lost digits.
bool is_torn(std::string_view line, const LogFormat& format) {
  if (format.decimals_at_end == 0) return false;
  const std::size_t before = line.find_last_not_of("0123456789");
  return before == std::string_view::npos || line[before] != '.' ||
         line.size() - before - 1 < format.decimals_at_end;
}

// What was torn goes on with the next line, and that begins with the same words.
bool is_two_lines(std::string_view line) {
  constexpr std::size_t kBeginning = 10;
  const std::string_view beginning = line.substr(0, kBeginning);
  if (beginning.find_first_not_of(" \t") == std::string_view::npos) return false;
  return beginning.size() == kBeginning && line.find(beginning, 1) != std::string_view::npos;
}

// Lines of another format among those that do not fit.
class OtherLines {
 public:
  OtherLines(const LogFormat& format, OtherFormats wanted) : format_(format), wanted_(wanted) {}

  void take(std::string_view line, std::int64_t line_number) {
    constexpr std::int64_t kAll = 2000, kOneOf = 16;  // of long logs some
    if (wanted_ == OtherFormats::pass_over || (++lines_ > kAll && lines_ % kOneOf != 0)) return;
    for (const LogFormat* other : log_formats()) {
      if (other->framework == format_.framework || other->shares_lines ||
          (other->is_own_layout && format_.is_own_layout))
        continue;
      const LineReading reading = other->read_line(line, {.images_per_step = 1});
      if (reading.fit != Fit::whole || !reading.problem.empty()) continue;
      Found& found = found_[other];
      if (++found.lines == 1) found.first = line_number;
    }
  }

  std::optional<Note> defect() const {
    constexpr std::int64_t kFew = 3;
    for (const auto& [other, found] : found_)
      if (found.lines >= kFew)
        return Note{"mixed", fmt::format("line {} and others have the log format {}, the rest {}; split the "
                                         "file, or choose one with --log-format",
                                         found.first, other->name, format_.name)};
    return std::nullopt;
  }

 private:
  struct Found {
    std::int64_t lines = 0, first = 0;
  };
  const LogFormat& format_;
  OtherFormats wanted_;
  std::int64_t lines_ = 0;
  std::map<const LogFormat*, Found> found_;
};

// What reading a file gathers.
struct Findings {
  WholeLog whole;
  ImagesPerStep images;
  Losses losses;
  OtherLines others;
  std::string contradiction = {};
  std::optional<std::int64_t> images_per_iteration = {};
};

void take_lines(LineReader& lines, const LogFormat& format, const RunSize& size, const Stretch& stretch,
                Findings& found) {
  const bool may_be_two = !is_two_lines(format.example);
  while (const std::optional<WrittenLine> written = lines.next_written()) {
    const std::string_view line = written->text;
    if (found.contradiction.empty()) found.contradiction = contradiction(format.size_words, line, size);
    if (Captured says; match_shape(format.images_line, line, says) == Fit::whole)
      found.images_per_iteration = says.count;
    LineReading reading = format.read_line(line, size);
    if (reading.fit != Fit::whole) found.others.take(line, lines.line_number());
    if (reading.fit == Fit::none) continue;
    const bool is_outside = reading.has_index && !stretch.holds(reading.epoch, reading.iteration);
    if (reading.fit == Fit::whole && is_outside) continue;
    if (reading.fit == Fit::whole && may_be_two && is_two_lines(line))
      reading.problem = "is two lines in one";
    if (!lines.line_had_end() && reading.problem.empty() && is_torn(line, format))
      reading.problem = "is cut off";
    reading.writer = std::string(written->writer) + reading.writer;
    found.whole.take(reading, line, lines.line_number());
    if (reading.fit != Fit::whole) continue;
    if (format.is_own_layout) found.images.take(line);
    found.losses.take(line, reading.loss);
  }
}

// What the steps of the window show. Without the run's size times are not known, but their ratios are.
void note_steps(const LogFormat& format, const LogSeries& series, const Window& window, const RunSize& size,
                LogReading& log) {
  const std::vector<double> seconds = format.step_seconds(series, window, size);
  const auto iteration_at = [&](std::size_t place) {
    const std::int64_t step = series.index_step, warmup = (window.warmup + step - 1) / step;
    return series.first_index + (static_cast<std::int64_t>(place) + series.lead + warmup) * step;
  };
  const Stalls stalls = find_stalls(seconds);
  if (stalls.count > 0 && size.is_known) log.stall = stall_text(stalls, iteration_at(stalls.longest));
  if (const std::optional<SpeedChange> change = find_speed_change(seconds))
    log.change =
        fmt::format("the speed {} from {:.0f} to {:.0f} images/s at iteration {}",
                    change->after < change->before ? "rose" : "fell", size.images_per_step / change->before,
                    size.images_per_step / change->after, iteration_at(change->place));
}

}  // namespace

bool looks_like_training(std::string_view text) {
  if (text.find_first_of("0123456789") == std::string_view::npos) return false;
  const std::string line = lower_case(std::string(text.substr(0, 1000)));
  int words = 0;
  for (const char* word :
       {"loss", "epoch", "iter", "step", "batch", "/s", "speed", "throughput", "ips", "elapsed"})
    if (line.find(word) != std::string::npos) ++words;
  return words >= 2;
}

Recognition recognize_format(const fs::path& file) {
  constexpr std::int64_t kHeaderLines = 100000;  // frameworks print their configuration first
  constexpr std::int64_t kEnough = 200;
  Recognition found;
  std::map<const LogFormat*, std::int64_t> fitting;
  std::int64_t most = 0;
  LineReader lines(file);
  while (most < kEnough && lines.line_number() < kHeaderLines) {
    const std::optional<WrittenLine> written = lines.next_written();
    if (!written) break;
    found.has_lines = true;
    const std::string_view line = written->text;
    bool fits = false;
    for (const LogFormat* format : log_formats()) {
      if (format->shares_lines) continue;
      const LineReading reading = format->read_line(line, {.images_per_step = 1});
      if (reading.fit != Fit::whole || !reading.problem.empty()) continue;
      fits = true;
      most = std::max(most, ++fitting[format]);
    }
    if (!fits && found.training_line.empty() && looks_like_training(line))
      found.training_line =
          fmt::format("line {}: {}", lines.line_number(), shortened(printable(std::string(line)), 120));
  }
  const auto is_other = [](const auto& one) { return !one.first->is_last_choice; };
  if (std::ranges::any_of(fitting, is_other))
    std::erase_if(fitting, [&](const auto& one) { return !is_other(one); });
  most = 0;
  for (const auto& [format, count] : fitting) most = std::max(most, count);
  for (const LogFormat* format : log_formats()) {
    if (most == 0 || fitting[format] < most) continue;
    if (!found.format)
      found.format = format;
    else if (!found.format->is_own_layout || !format->is_own_layout)
      found.as_well = format;
  }
  return found;
}

StatedSize stated_size(const LogFormat& format, const fs::path& file) {
  constexpr std::int64_t kHeaderLines = 10000;
  StatedSize stated;
  LineReader lines(file);
  while (lines.line_number() < kHeaderLines) {
    const std::optional<WrittenLine> written = lines.next_written();
    if (!written) break;
    const std::string_view line = written->text;
    const SizeWords& words = format.size_words;
    if (const auto batch = number_behind(words.batch_per_device, line)) stated.batch_per_device = batch;
    if (const auto devices = number_behind(words.devices_per_node, line)) stated.devices_per_node = devices;
    if (const auto nodes = number_behind(words.nodes, line)) stated.nodes = nodes;
  }
  return stated;
}

LogReading read_log(const LogFormat& format, const fs::path& file, const Window& window, const RunSize& size,
                    const Stretch& stretch, OtherFormats other_formats) {
  LogReading log;
  Findings found{WholeLog(format, window, size), {}, Losses(format.loss), OtherLines(format, other_formats)};
  try {
    LineReader lines(file);
    take_lines(lines, format, size, stretch, found);
    log.bytes = lines.bytes_read();
    log.hash = lines.hash();
  } catch (const Error& error) {
    log.defect = Note{"unreadable", error.what()};
    return log;
  }
  log.defect = log.bytes == 0 ? Note{"empty", "it is empty"} : found.others.defect();
  if (!log.defect) log.defect = found.whole.defect();
  const LogSeries& series = found.whole.series();
  if (!log.defect && size.is_known) log.defect = found.images.defect(size.images_per_step);
  if (!found.contradiction.empty() && !log.defect) log.defect = Note{"wrongly named", found.contradiction};
  if (!log.defect && !format.images_line.empty() && !found.images_per_iteration)
    log.defect = Note{"malformed", "no line says how many images an iteration is of"};
  if (log.defect) return log;
  RunSize own = size;
  if (found.images_per_iteration) {
    own.images_per_step = static_cast<double>(*found.images_per_iteration);
    own.is_known = true;
  }
  log.images_per_second = format.speed(series, window, own);
  if (!format.is_table()) log.images_per_second = format.round_average(log.images_per_second);
  if (!std::isfinite(log.images_per_second)) {
    log.defect = Note{"malformed",
                      format.stamps ? "no time passes in the window" : "its speeds are too large to average"};
    return log;
  }
  log.caveat = format.caveat(series, window, own);
  if (stretch.is_whole() && format.has_script() && series.first_index > format.unlogged + series.index_step)
    append_part(log.caveat,
                fmt::format("a log begins with iteration {}, and the window is counted from there",
                            series.first_index),
                ", and ");
  note_steps(format, series, window, own, log);
  log.divergence = found.losses.divergence();
  return log;
}

}  // namespace plumb
