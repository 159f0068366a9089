// MindSpore with a data sink, for every epoch of one iteration or more two lines of each rank:
// "epoch: 1 step: 1, loss is 7.0" and "epoch time: 320.803 ms, per step time: 320.803 ms". Published script:
// DLPerf c89430b, MindSpore/resnet50v1.5/extract_mindspore_logs_time.py. It takes epoch·step for the number
// of iterations, adds the times of all lines and divides by the number of ranks, whether all of them have
// written or not.
#include "results/dialects/scripts.h"

namespace plumb {
namespace {
namespace mindspore {

constexpr std::int64_t kHighest = 1'000'000'000;  // of an epoch and of a step

bool is_epoch_line(std::string_view line) {
  return line.find("epoch:") != std::string_view::npos && line.find("step:") != std::string_view::npos;
}

bool is_time_line(std::string_view line) {
  return line.find("epoch time:") != std::string_view::npos;
}

// `(?<=WORD\s)\d+`, the first; kHighest if it is above.
std::optional<std::int64_t> number_after(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const std::size_t begin = at + word.size() + 1;
    if (begin >= line.size() || !is_python_blank(line[begin - 1])) continue;
    const std::size_t count = digits_at(line, begin);
    if (count == 0) continue;
    const std::optional<std::int64_t> number = python_int(line.substr(begin, count));
    return number && *number < kHighest ? *number : kHighest;
  }
  return std::nullopt;
}

std::optional<std::int64_t> iterations_done(std::string_view line) {
  const std::optional<std::int64_t> epoch = number_after(line, "epoch:"), step = number_after(line, "step:");
  return epoch && step ? std::optional(*epoch * *step) : std::nullopt;
}

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (is_epoch_line(line)) {
    const std::optional<std::int64_t> index = iterations_done(line);
    if (!index) return LineReading{.problem = "has no numbers of the form 'epoch: 1 step: 1'"};
    return LineReading{.part = LinePart::index, .index = *index};
  }
  if (!is_time_line(line)) return std::nullopt;
  LineReading reading = reading_of(0, decimal_between(line, "epoch time: ", " ms"), "",
                                   "has no time of the form 'epoch time: 320.803 ms'",
                                   "has a time that is not a positive number of milliseconds");
  reading.part = LinePart::value;
  return reading;
}

double speed_of(double milliseconds, std::int64_t iterations, const RunSize& size) {
  return size.images_per_step / (milliseconds / 1000 / static_cast<double>(iterations));
}

double speed(const LogSeries& series, const Window& window, const RunSize& size) {
  double milliseconds = 0;  // one after the other, as the script adds
  for (const double value : after_warmup(series, window)) milliseconds += value;
  const std::int64_t end = window.iterations / series.index_step * series.index_step;
  return speed_of(milliseconds, (end - window.warmup) * series.lines_per_index, size);
}

std::string caveat(const LogSeries& series, const Window& window, const RunSize& size) {
  const std::int64_t ranks = size.ranks();
  std::string text;
  if (series.lines_per_index != ranks)
    text = fmt::format(
        "an epoch has {}; the published script divides by {} ranks, and its figures are {} times too high",
        counted(series.lines_per_index, "time"), ranks, ranks / series.lines_per_index);
  if (window.iterations % series.index_step != 0)
    append_part(text,
                fmt::format("an epoch is of {} iterations, which the published script's window cuts in two",
                            series.index_step),
                ", and ");
  return text;
}

// Both lines of every rank.
std::string lines_of(const LoggedInterval& interval, const RunSize& size) {
  const double milliseconds = size.images_per_step / interval.images_per_second * 1000;
  return once_per_rank(
      fmt::format("epoch: {} step: 1, loss is {:.6f}\nepoch time: {:.3f} ms, per step time: {:.3f} ms",
                  interval.last + 1, interval.loss, milliseconds, milliseconds),
      size);
}

}  // namespace mindspore
}  // namespace

const Dialect kMindspore{.name = "mindspore",
                         .framework = "MindSpore",
                         .source = "MindSpore, from each epoch's time",
                         .model = "resnet50",
                         .step_is_first_index = true,
                         .ranks_share_a_log = true,
                         .rounding = Rounding::python_averages,
                         .read_line = mindspore::read_line,
                         .speed = mindspore::speed,
                         .caveat = mindspore::caveat,
                         .format = {.line = mindspore::lines_of}};

}  // namespace plumb
