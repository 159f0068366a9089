// NVIDIA's PyTorch container, a line of rank 0 for every iteration, counted from 1. Published script: DLPerf
// c89430b, NVIDIADeepLearningExamples/PyTorch/resnet50v1.5/extract_pytorch_logs_time.py: it passes over
// iterations 1 to 5, then counts lines, and takes the stamps of the 20th and of the 120th.
#include "base/text.h"
#include "results/formats/log_format.h"

namespace plumb {
namespace {
namespace ngc_pytorch {

constexpr FormatFacts kFacts{
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
    .written_step = 1};

// No script of DLPerf takes the speeds.
constexpr FormatFacts speed_facts() {
  FormatFacts facts = kFacts;
  facts.name = "ngc_pytorch_speed";
  facts.source = "NVIDIA's PyTorch, from each line's train.total_ips";
  facts.shares_lines = true;
  facts.written_step = 0;
  return facts;
}

class Time final : public StampFormat {
 public:
  constexpr Time() : StampFormat(kFacts, StampKind::with_dot) {}

  std::string line(const LoggedInterval& interval, const RunSize& /*size*/) const override {
    return fmt::format("DLL {} - Epoch: 0 Iteration: {}  train.loss : {:.5f}  train.total_ips : {:.2f} img/s",
                       interval.fine_stamp, interval.last + 1, interval.loss, interval.images_per_second);
  }
};

constexpr Time kTime;
constexpr SpeedFormat kSpeed(speed_facts(), {});

}  // namespace ngc_pytorch
}  // namespace

const LogFormat &kNgcPytorchTime = ngc_pytorch::kTime, &kNgcPytorchSpeed = ngc_pytorch::kSpeed;

}  // namespace plumb
