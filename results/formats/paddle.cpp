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

constexpr Speed kSpeed;
constexpr StampFormat kTime(kTimeFacts, StampKind::with_comma);

}  // namespace paddle
}  // namespace

const LogFormat &kPaddleSpeed = paddle::kSpeed, &kPaddleTime = paddle::kTime;

}  // namespace plumb
