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
#include "results/formats/log_format.h"

namespace plumb {
constexpr LogFormat kPytorch(
    {.name = "pytorch",
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
     .how_to_print = "-p 1",
     .written_step = 1,
     // Three decimals are what the published script can read. The averages in parentheses are left out: they
     // are 0.
     .writes = "Epoch: [0][{last:3}/{done}]\tTime {speed_seconds:6.3f} ( 0.000)\tData  0.000 ( 0.000)\tLoss "
               "{loss:.4e} (0.0000e+00)\tAcc@1 {top1_percent:6.2f} (  0.00)",
     .script_note = "the published script counts lines, not iterations, so it averages other "
                    "iterations than these figures",
     .script_lines = FormatFacts::one,
     .speeds = {.seconds = 1, .mean = SpeedFacts::times}});
constexpr LogFormat kNgcPytorchTime(
    {.name = "ngc_pytorch_time",
     .framework = "NGC PyTorch",
     .source = "NVIDIA's PyTorch, from the lines' wall stamps",
     .model = "resnet50",
     .example = "DLL 2020-09-15 14:29:13.473765 - Epoch: 0 Iteration: 1  train.loss : 7.09304  "
                "train.total_ips : 267.44 img/s",
     .shape = "Epoch: {epoch} Iteration: {iteration} train.loss : {any} *train.total_ips : {value} img/s",
     .loss = "train.loss",
     .first_counted = 6,
     .rounding = Rounding::python_averages,
     .written_step = 1,
     .writes = "DLL {fine_stamp} - Epoch: 0 Iteration: {done}  train.loss : {loss:.5f}  train.total_ips : "
               "{images_per_second:.2f} img/s",
     .stamps = StampKind::with_dot});
// No script of DLPerf takes the speeds.
constexpr LogFormat kNgcPytorchSpeed(read_otherwise(kNgcPytorchTime, "ngc_pytorch_speed",
                                                    "NVIDIA's PyTorch, from each line's train.total_ips",
                                                    std::nullopt));

}  // namespace plumb
