// TensorFlow 2's official ResNet, a line for every 100 steps (--log_steps) with the speed of all replicas.
// Published scripts: DLPerf c89430b, TensorFlow/resnet50v1.5/; extract_tensorflow_logs.py takes the
// examples/second, extract_tensorflow_logs_time.py the lines' stamps: it reads the time of the day alone, so
// a run over midnight gets a speed below 0; here the day before it counts, too. Lines: models v2.3.0,
// official/utils/misc/keras_utils.py.
//
// NVIDIA's TensorFlow 1 container, a line of rank 0 for every iteration from the 21st on. Published scripts:
// DLPerf c89430b, NVIDIADeepLearningExamples/TensorFlow/Classification/ConvNets/resnet50v1.5/;
// extract_tensorflow_logs.py takes every iteration's imgs_per_sec, extract_tensorflow_logs_time.py the lines'
// stamps: the last warm-up iteration has no line, so the time is that of one iteration fewer, from the end of
// iteration warmup+1 on. Lines: DeepLearningExamples' utils/hooks/training_hooks.py.
#include "results/formats/log_format.h"

namespace plumb {
namespace {

constexpr std::int64_t kStepsPerLine = 100;  // by the published scripts, whatever the lines say
constexpr std::int64_t kUnlogged = 20;

}  // namespace

constexpr LogFormat kTf2Speed(
    {.name = "tf2_speed",
     .framework = "TensorFlow 2.x",
     .source = "TensorFlow 2, from the examples/second of every 100 steps",
     .model = "resnet50",
     .example =
         "I0801 10:00:00.594147 1403 keras_utils.py:145] TimeHistory: 39.78 seconds, 321.77 examples/second "
         "between steps 0 and 100",
     .shape = "TimeHistory: {any} seconds, {value} examples/second between steps {from} and {iteration}",
     .default_window = {.iterations = 600, .warmup = 100},
     .index_step = 0,
     .written_step = kStepsPerLine,
     .writes = "I{month}{day_and_time} 1 keras_utils.py:145] TimeHistory: {speed_seconds:.2f} seconds, "
               "{images_per_second:.2f} examples/second between steps {first} and {done}",
     .script_note = "the published script assumes 100 steps per line, so its window differs",
     .script_step = kStepsPerLine});
constexpr LogFormat kTf2Time(read_otherwise(kTf2Speed, "tf2_time",
                                            "TensorFlow 2, from the lines' wall stamps", StampKind::of_glog));

constexpr LogFormat kNgcTfSpeed(
    {.name = "ngc_tf_speed",
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
     .first_written = kUnlogged,
     .writes = "DLL {fine_stamp} - (0, {first}) imgs_per_sec : {images_per_second:.6f}  cross_entropy : "
               "{loss:.6f}  learning_rate : {learning_rate:.6f} ",
     .speeds = {.decimals = 2}});
constexpr LogFormat kNgcTfTime(read_otherwise(kNgcTfSpeed, "ngc_tf_time",
                                              "NVIDIA's TensorFlow 1, from the lines' wall stamps",
                                              StampKind::with_dot));

}  // namespace plumb
