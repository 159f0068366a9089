// NVIDIA's TensorFlow 1 container, a line of rank 0 for every iteration from the 21st on. Published scripts:
// DLPerf c89430b, NVIDIADeepLearningExamples/TensorFlow/Classification/ConvNets/resnet50v1.5/;
// extract_tensorflow_logs.py takes every iteration's imgs_per_sec, extract_tensorflow_logs_time.py the lines'
// stamps: the last warm-up iteration has no line, so the time is that of one iteration fewer, from the end of
// iteration warmup+1 on. Lines: DeepLearningExamples' utils/hooks/training_hooks.py.
#include "base/text.h"
#include "results/formats/log_format.h"

namespace plumb {
namespace {
namespace ngc_tf {

constexpr std::int64_t kUnlogged = 20;

constexpr FormatFacts kFacts{
    .name = "ngc_tf_speed",
    .framework = "NGC TensorFlow",
    .source = "NVIDIA's TensorFlow 1, from each iteration's imgs_per_sec",
    .model = "resnet50",
    .example =
        "DLL 2021-03-23 11:48:38.824370 - (0, 20) imgs_per_sec : 2879.142978189404  cross_entropy : 7.2",
    .shape =
        "({epoch}, {iteration}) *imgs_per_sec : {value} |Iteration: {iteration} *imgs_per_sec : {value} ",
    .loss = "cross_entropy",
    .unlogged = kUnlogged,
    .lowest_warmup = kUnlogged,
    .written_step = 1,
    .first_written = kUnlogged};

constexpr FormatFacts time_facts() {
  FormatFacts facts = kFacts;
  facts.name = "ngc_tf_time";
  facts.source = "NVIDIA's TensorFlow 1, from the lines' wall stamps";
  facts.shares_lines = true;
  facts.rounding = Rounding::python_averages;
  facts.written_step = 0;
  return facts;
}

class Speed final : public SpeedFormat {
 public:
  constexpr Speed() : SpeedFormat(kFacts, {.decimals = 2}) {}

  std::string line(const LoggedInterval& interval, const RunSize& /*size*/) const override {
    return fmt::format(
        "DLL {} - (0, {}) imgs_per_sec : {:.6f}  cross_entropy : {:.6f}  learning_rate : {:.6f} ",
        interval.fine_stamp, interval.first, interval.images_per_second, interval.loss,
        interval.learning_rate);
  }
};

constexpr Speed kSpeed;
constexpr StampFormat kTime(time_facts(), StampKind::with_dot);

}  // namespace ngc_tf
}  // namespace

const LogFormat &kNgcTfSpeed = ngc_tf::kSpeed, &kNgcTfTime = ngc_tf::kTime;

}  // namespace plumb
