// PyTorch's ImageNet example as DLPerf ran it, a line for every iteration, counted from 0:
// "Epoch: [0][ 6/53]<TAB>Time  0.403 ( 2.123)<TAB>Data  0.106 ( 0.077)<TAB>Loss 1.1494e+01 (1.8538e+01) …",
// the iteration's seconds first. Published script: DLPerf c89430b,
// PyTorch/resnet50v1.5/extract_pytorch_logs_time.py.
//
// The script passes over iterations 0 to 5, then counts lines, and takes lines 21 to 120. Its two mistakes:
// - `\d{1}.\d{1,3}\s` takes one digit before the point, so 12.363 s count as 2.363.
// - Each rank of a node writes its lines into one log, so its 100 lines are of fewer iterations with more
//   ranks. Here the lines of an iteration belong together, and iterations are counted.
#include "results/dialects/scripts.h"

namespace plumb {
namespace {
namespace pytorch {

constexpr double kLongTime = 10;  // seconds from which on the script drops digits

// "Time  0.403 "
std::optional<double> seconds_of(std::string_view line) {
  const auto rest = text_behind(line, "Time ");
  const std::size_t begin = rest ? rest->find_first_not_of(' ') : std::string_view::npos;
  const std::size_t end = rest ? rest->find(' ', begin) : std::string_view::npos;
  return end == std::string_view::npos ? std::nullopt : python_float(rest->substr(begin, end - begin));
}

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  const auto rest = text_behind(line, "Epoch: [0][");
  if (!rest) return std::nullopt;
  return reading_of(python_int(rest->substr(0, rest->find('/'))), seconds_of(*rest),
                    "has no iteration of the form 'Epoch: [0][6/53]'",
                    "has no time of the form 'Time 0.403 ('",
                    "has a time that is not a positive number of seconds");
}

// The seconds of the lines that count.
std::span<const double> in_window(const LogSeries& series, const Window& window) {
  const std::int64_t left_out = (kFirstCounted - series.first_index + window.warmup) * series.lines_per_index;
  return std::span(series.values).subspan(static_cast<std::size_t>(left_out));
}

double speed(const LogSeries& series, const Window& window, const RunSize& size) {
  double seconds = 0;  // one after the other, as the script adds
  for (const double value : in_window(series, window)) seconds += value;
  const std::int64_t lines = (window.iterations - window.warmup) * series.lines_per_index;
  return size.images_per_step / (seconds / static_cast<double>(lines));
}

std::string caveat(const LogSeries& series, const Window& window, const RunSize& /*size*/) {
  const std::int64_t ranks = series.lines_per_index;
  std::string text;
  if (ranks > 1)
    text = fmt::format(
        "{} ranks have written into each log, and the published script's lines {} to {} are of iterations {} "
        "to {}; these figures are of {} to {}",
        ranks, window.warmup + 1, window.iterations, kFirstCounted + window.warmup / ranks,
        kFirstCounted + (window.iterations - 1) / ranks, kFirstCounted + window.warmup,
        kFirstCounted + window.iterations - 1);
  const auto counted = in_window(series, window);
  if (std::ranges::any_of(counted, [](double seconds) { return seconds >= kLongTime; }))
    append_part(text, "some iterations took 10 s and more, of which the published script drops the tens",
                ", and ");
  return text;
}

// Three decimals are what the published script can read. The averages in parentheses are left out: they are
// 0.
std::string line_of(const LoggedInterval& interval, const RunSize& size) {
  return fmt::format(
      "Epoch: [0][{:3}/{}]\tTime {:6.3f} ( 0.000)\tData  0.000 ( 0.000)\tLoss {:.4e} (0.0000e+00)\t"
      "Acc@1 {:6.2f} (  0.00)",
      interval.last, interval.last + 1, size.images_per_step / interval.images_per_second, interval.loss,
      interval.top1 * 100);
}

}  // namespace pytorch
}  // namespace

const Dialect kPytorch{.name = "pytorch",
                       .framework = "PyTorch",
                       .source = "PyTorch's ImageNet example, from each iteration's Time",
                       .model = "resnet50",
                       .highest_first_index = 1,
                       .ranks_share_a_log = true,
                       .rounding = Rounding::python,
                       .read_line = pytorch::read_line,
                       .indices_wanted = indices_wanted_after_five,
                       .speed = pytorch::speed,
                       .caveat = pytorch::caveat,
                       .window_text = window_after_five,
                       .format = {.line = pytorch::line_of}};

}  // namespace plumb
