// NVIDIA's PyTorch container, a line of rank 0 for every iteration, counted from 1: "DLL 2020-09-15
// 14:29:13.473765 - Epoch: 0 Iteration: 1  train.loss : 7.09304  train.total_ips : 267.44 img/s". Published
// script: DLPerf c89430b, NVIDIADeepLearningExamples/PyTorch/resnet50v1.5/extract_pytorch_logs_time.py: it
// passes over iterations 1 to 5, then counts lines, and takes the stamps of the 20th and of the 120th.
#include "results/dialects/scripts.h"
#include "results/dialects/stamps.h"

namespace plumb {
namespace {
namespace ngc_pytorch_time {

constexpr std::string_view kMark = "Iteration: ";

// `Iteration: (.*)  train.loss :`
std::optional<std::int64_t> iteration_of(std::string_view line) {
  constexpr std::string_view kBefore = "  train", kAfter = "loss :";
  const auto rest = text_behind(line, kMark);
  if (!rest) return std::nullopt;
  for (std::size_t end = rest->rfind(kBefore); end != std::string_view::npos;
       end = end == 0 ? std::string_view::npos : rest->rfind(kBefore, end - 1)) {
    const std::size_t loss = end + kBefore.size() + 1;  // the dot stands for any character
    if (loss <= rest->size() && rest->substr(loss).starts_with(kAfter))
      return python_int(rest->substr(0, end));
  }
  return std::nullopt;
}

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (line.find(kMark) == std::string_view::npos || line.find("train.loss :") == std::string_view::npos)
    return std::nullopt;
  return reading_of_stamp(iteration_of(line), find_stamp(line, kMicroseconds),
                          "has no 'Iteration: N  train.loss :'",
                          "has no stamp of the form '2020-09-15 14:29:13.473765'");
}

double speed(const LogSeries& series, const Window& window, const RunSize& size) {
  const std::int64_t begin = kFirstCounted - series.first_index + window.warmup - 1;
  return speed_between(series.values[static_cast<std::size_t>(begin)], series.values.back(),
                       window.iterations - window.warmup, size.images_per_step);
}

std::string line_of(const LoggedInterval& interval, const RunSize& /*size*/) {
  return fmt::format("DLL {} - Epoch: 0 Iteration: {}  train.loss : {:.5f}  train.total_ips : {:.2f} img/s",
                     interval.fine_stamp, interval.last + 1, interval.loss, interval.images_per_second);
}

}  // namespace ngc_pytorch_time
}  // namespace

const Dialect kNgcPytorchTime{.name = "ngc_pytorch_time",
                              .framework = "NGC PyTorch",
                              .source = "NVIDIA's PyTorch, from the lines' wall stamps",
                              .model = "resnet50",
                              .highest_first_index = 1,
                              .values = ValueKind::stamp,
                              .rounding = Rounding::python_averages,
                              .read_line = ngc_pytorch_time::read_line,
                              .indices_wanted = indices_wanted_after_five,
                              .speed = ngc_pytorch_time::speed,
                              .window_text = window_after_five,
                              .format = {.line = ngc_pytorch_time::line_of}};

}  // namespace plumb
