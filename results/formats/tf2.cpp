// TensorFlow 2's official ResNet, a line for every 100 steps (--log_steps) with the speed of all replicas.
// Published scripts: DLPerf c89430b, TensorFlow/resnet50v1.5/; extract_tensorflow_logs.py takes the
// examples/second, extract_tensorflow_logs_time.py the lines' stamps: it reads the time of the day alone, so
// a run over midnight gets a speed below 0; here the day before it counts, too. Lines: models v2.3.0,
// official/utils/misc/keras_utils.py.
#include <cmath>

#include "base/text.h"
#include "results/formats/log_format.h"

namespace plumb {
namespace {
namespace tf2 {

constexpr std::int64_t kStepsPerLine = 100;  // by the published scripts, whatever the lines say

constexpr FormatFacts kFacts{
    .name = "tf2_speed",
    .framework = "TensorFlow 2.x",
    .source = "TensorFlow 2, from the examples/second of every 100 steps",
    .model = "resnet50",
    .example =
        "I0801 10:00:00.594147 1403 keras_utils.py:145] TimeHistory: 39.78 seconds, 321.77 "
        "examples/second between steps 0 and 100",
    .shape = "TimeHistory: {any} seconds, {value} examples/second between steps {from} and {iteration}",
    .default_window = {.iterations = 600, .warmup = 100},
    .index_step = 0,
    .written_step = kStepsPerLine};

constexpr FormatFacts time_facts() {
  FormatFacts facts = kFacts;
  facts.name = "tf2_time";
  facts.source = "TensorFlow 2, from the lines' wall stamps";
  facts.shares_lines = true;
  facts.rounding = Rounding::python_averages;
  facts.written_step = 0;
  return facts;
}

// If a line isn't of as many steps as the scripts think.
std::string step_caveat(const LogSeries& series, const Window& window) {
  if (series.index_step == kStepsPerLine) return "";
  return fmt::format(
      "a line is of {} steps; the published script takes it for {}, so its window ends at step {}",
      series.index_step, kStepsPerLine, window.iterations / kStepsPerLine * series.index_step);
}

class Speed final : public SpeedFormat {
 public:
  constexpr Speed() : SpeedFormat(kFacts, {}) {}

  std::string caveat(const LogSeries& series, const Window& window, const RunSize& /*size*/) const override {
    return step_caveat(series, window);
  }

  // "0102 23:59:53.657123" of "2025-01-02 23:59:53.657123".
  std::string line(const LoggedInterval& interval, const RunSize& size) const override {
    const std::string_view stamp = interval.fine_stamp;
    const double images = size.images_per_step * static_cast<double>(interval.last + 1 - interval.first);
    return fmt::format(
        "I{}{} 1 keras_utils.py:145] TimeHistory: {:.2f} seconds, {:.2f} examples/second between steps {} "
        "and "
        "{}",
        stamp.substr(5, 2), stamp.substr(8), images / interval.images_per_second, interval.images_per_second,
        interval.first, interval.last + 1);
  }
};

class Time final : public StampFormat {
 public:
  constexpr Time() : StampFormat(time_facts(), StampKind::of_glog) {}

  std::string caveat(const LogSeries& series, const Window& window, const RunSize& /*size*/) const override {
    const std::vector<double> stamps = in_window(series, window);
    std::string text = step_caveat(series, window);
    if (std::floor(stamps.front() / kDay) != std::floor(stamps.back() / kDay))
      append_part(
          text,
          "a run goes over midnight, where the published script, which reads no date, finds a speed below 0",
          ", and ");
    return text;
  }
};

constexpr Speed kSpeed;
constexpr Time kTime;

}  // namespace tf2
}  // namespace

const LogFormat &kTf2Speed = tf2::kSpeed, &kTf2Time = tf2::kTime;

}  // namespace plumb
