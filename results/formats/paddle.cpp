// Paddle. Published scripts: DLPerf c89430b, PaddlePaddle/resnet50v1.5/; extract_paddle_logs.py takes each
// iteration's time, extract_paddle_logs_time.py the stamps of the last warm-up iteration and of the last
// iteration.
#include "base/text.h"
#include "results/formats/log_format.h"

namespace plumb {
namespace {
namespace paddle {

constexpr FormatFacts kTimeFacts{.name = "paddle_time",
                                 .framework = "PaddlePaddle",
                                 .source = "Paddle and Plumbline, from the lines' wall stamps",
                                 .model = "resnet50",
                                 .example = kOwnExample,
                                 .shape = "[Pass {epoch}, train batch {iteration}]*elapse {any} sec",
                                 .shares_lines = true,
                                 .rounding = Rounding::python_averages,
                                 .written_step = 1,
                                 .is_own_layout = true};

class Speed final : public SpeedFormat {
 public:
  constexpr Speed()
      : SpeedFormat({.name = "paddle_speed",
                     .framework = kTimeFacts.framework,
                     .source = "Paddle and Plumbline, from each iteration's elapse",
                     .model = kTimeFacts.model,
                     .example = kOwnExample,
                     .shape = "[Pass {epoch}, train batch {iteration}]*elapse {value} sec",
                     .written_step = 1,
                     .is_own_layout = true},
                    {.seconds = 1, .decimals = 4}) {}

  std::string caveat(const LogSeries& series, const Window& window, const RunSize& /*size*/) const override {
    if (series.lines <= window.iterations) return "";
    return fmt::format("a log has {} iterations, of which {} to {} count; --warmup and --iters choose others",
                       series.lines, window.warmup + 1, window.iterations);
  }
};

// Since September 2020 (PaddlePaddle/models#4882, PaddlePaddle/PaddleClas#369, #525). The ips is of the batch
// that the batch_cost is of, a rank's or all ranks'.
constexpr SpeedFormat kIps(
    {.name = "paddle_ips",
     .framework = kTimeFacts.framework,
     .source = "Paddle since September 2020, from each line's ips",
     .model = kTimeFacts.model,
     .example = "INFO:utils.utility:[Pass 0, train batch 0] \tloss 6.9, acc1 0.0, acc5 0.0, lr 0.1, "
                "batch_cost 0.13110 sec, reader_cost 0.00069 sec, ips 976.32917 images/sec",
     .shape = "[Pass {epoch}, train batch {iteration}]*batch_cost {seconds} sec,*ips {value} images/sec|"
              "epoch:{epoch} *train step:{iteration} *batch_cost: {seconds} s,*ips: {value} |"
              "[Train][Epoch {epoch}/{any}][Iter: {iteration}/{any}]*batch_cost: {seconds}s,*ips: {value} "},
    {.of = SpeedFacts::rank});
constexpr Speed kSpeed;
constexpr StampFormat kTime(kTimeFacts, StampKind::with_comma);

}  // namespace paddle
}  // namespace

const LogFormat &kPaddleSpeed = paddle::kSpeed, &kPaddleTime = paddle::kTime, &kPaddleIps = paddle::kIps;

}  // namespace plumb
