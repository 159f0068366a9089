// PyTorch's ImageNet example as DLPerf ran it, a line for every iteration, counted from 0, with the
// iteration's seconds first. Published script: DLPerf c89430b,
// PyTorch/resnet50v1.5/extract_pytorch_logs_time.py.
//
// The script passes over iterations 0 to 5, then counts lines, and takes lines 21 to 120. Its two mistakes:
// - `\d{1}.\d{1,3}\s` takes one digit before the point, so 12.363 s count as 2.363.
// - Each rank of a node writes its lines into one log, so its 100 lines are of fewer iterations with more
//   ranks. Here the lines of an iteration belong together, and iterations are counted.
//
// NVIDIA's PyTorch container, a line of rank 0 for every iteration, counted from 1. Published script: DLPerf
// c89430b, NVIDIADeepLearningExamples/PyTorch/resnet50v1.5/extract_pytorch_logs_time.py: it passes over
// iterations 1 to 5, then counts lines, and takes the stamps of the 20th and of the 120th.
#include "base/text.h"
#include "results/formats/log_format.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {
namespace pytorch {

// Three decimals are what the published script can read. The averages in parentheses are left out: they are
// 0.
std::string imagenet_line(const LoggedInterval& interval, const RunSize& size) {
  return fmt::format(
      "Epoch: [0][{:3}/{}]\tTime {:6.3f} ( 0.000)\tData  0.000 ( 0.000)\tLoss {:.4e} (0.0000e+00)\t"
      "Acc@1 {:6.2f} (  0.00)",
      interval.last, interval.last + 1, size.images_per_step / interval.images_per_second, interval.loss,
      interval.top1 * 100);
}

class PyTorch final : public SpeedFormat {
 public:
  constexpr PyTorch()
      : SpeedFormat({.name = "pytorch",
                     .framework = "PyTorch",
                     .source = "PyTorch's ImageNet example, from each iteration's Time",
                     .model = "resnet50",
                     .example = "Epoch: [0][ 6/53]\tTime  0.403 ( 2.123)\tData  0.106 ( 0.077)\t"
                                "Loss 1.1494e+01 (1.8538e+01)",
                     .shape = "Epoch: [{epoch}][{iteration}/{any}] Time {value} ({mean})",
                     .loss = "Loss",
                     .first_counted = 6,
                     .every_rank_writes = true,
                     .rounding = Rounding::python,
                     .how_to_print = " (-p 1)",
                     .written_step = 1,
                     .write = imagenet_line,
                     .script_note = "the published script counts lines, not iterations, so it averages other "
                                    "iterations than these figures",
                     .script_lines = one},
                    {.seconds = 1, .mean = SpeedFacts::times}) {}

  bool needs_every_iteration() const override { return false; }

  // Where not every iteration has a line, the means up to the last one and up to the warm-up tell.
  double speed(const LogSeries& series, const Window& window, const RunSize& size) const override {
    if (series.index_step == 1) return SpeedFormat::speed(series, window, size);
    const auto ranks = static_cast<std::size_t>(series.lines_per_index);
    const auto warmup = static_cast<std::size_t>(series.lead + window.warmup / series.index_step - 1);
    const std::int64_t steps = window.iterations / series.index_step;
    const auto seconds_up_to = [&](std::size_t index) {
      const auto done =
          static_cast<double>(series.first_index + static_cast<std::int64_t>(index) * series.index_step + 1);
      return mean(std::span(series.means).subspan(index * ranks, ranks)) * done;
    };
    const double seconds = seconds_up_to(static_cast<std::size_t>(steps)) - seconds_up_to(warmup);
    return size.images_per_step / (seconds / static_cast<double>(window.iterations - window.warmup));
  }
  // A line's own time is of one iteration among many.
  std::vector<double> step_seconds(const LogSeries& series, const Window& window,
                                   const RunSize& size) const override {
    return series.index_step == 1 ? SpeedFormat::step_seconds(series, window, size) : std::vector<double>{};
  }

  std::string caveat(const LogSeries& series, const Window& window, const RunSize& size) const override {
    if (series.index_step > 1)
      return fmt::format(
          "a log has a line for every {} iterations, and the figure is of iterations {} to {}, by "
          "the means in parentheses; -p 1 prints every iteration",
          series.index_step, window.warmup + 1, window.iterations);
    return SpeedFormat::caveat(series, window, size);
  }
};

constexpr PyTorch kFormat;

std::string ngc_line(const LoggedInterval& interval, const RunSize& /*size*/) {
  return fmt::format("DLL {} - Epoch: 0 Iteration: {}  train.loss : {:.5f}  train.total_ips : {:.2f} img/s",
                     interval.fine_stamp, interval.last + 1, interval.loss, interval.images_per_second);
}

constexpr FormatFacts kNgc{
    .name = "ngc_pytorch_time",
    .framework = "NGC PyTorch",
    .source = "NVIDIA's PyTorch, from the lines' wall stamps",
    .model = "resnet50",
    .example =
        "DLL 2020-09-15 14:29:13.473765 - Epoch: 0 Iteration: 1  train.loss : 7.09304  "
        "train.total_ips : 267.44 img/s",
    .shape = "Epoch: {epoch} Iteration: {iteration} train.loss : {any} *train.total_ips : {value} img/s",
    .loss = "train.loss",
    .first_counted = 6,
    .rounding = Rounding::python_averages,
    .written_step = 1,
    .write = ngc_line};

// No script of DLPerf takes the speeds.
constexpr FormatFacts ngc_speed_facts() {
  FormatFacts facts = kNgc;
  facts.name = "ngc_pytorch_speed";
  facts.source = "NVIDIA's PyTorch, from each line's train.total_ips";
  facts.shares_lines = true;
  facts.written_step = 0;
  return facts;
}

constexpr StampFormat kNgcTime(kNgc, StampKind::with_dot);
constexpr SpeedFormat kNgcSpeed(ngc_speed_facts(), {});

}  // namespace pytorch
}  // namespace

const LogFormat &kPytorch = pytorch::kFormat, &kNgcPytorchTime = pytorch::kNgcTime,
                &kNgcPytorchSpeed = pytorch::kNgcSpeed;

}  // namespace plumb
