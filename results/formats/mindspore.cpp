// MindSpore with a data sink, for every epoch of one iteration or more two lines of each rank. Published
// script: DLPerf c89430b, MindSpore/resnet50v1.5/extract_mindspore_logs_time.py. It takes epoch·step for the
// number of iterations, adds the times of all lines and divides by the number of ranks, whether all of them
// have written or not.
#include "results/formats/log_format.h"

namespace plumb {
constexpr LogFormat kMindspore(
    {.name = "mindspore",
     .framework = "MindSpore",
     .source = "MindSpore, from each epoch's time",
     .model = "resnet50",
     .example = "epoch: 1 step: 1, loss is 7.0 / epoch time: 320.803 ms, per step time: 320.803 ms",
     .shape = "^epoch: {iteration} step: {count}, loss|^epoch time: {value} ms",
     .loss = "loss is",
     .index_step = 0,
     .every_rank_writes = true,
     .rounding = Rounding::python_averages,
     .written_step = 1,
     .writes = "epoch: {done} step: 1, loss is {loss:.6f}\nepoch time: {milliseconds:.3f} ms, per step time: "
               "{milliseconds:.3f} ms",
     .writes_per_rank = true,
     .script_note = "the published script divides by all ranks, even if some have not written, so its "
                    "figures differ from these",
     .script_lines = FormatFacts::one_per_rank,
     .speeds = {.seconds = 0.001, .mean = SpeedFacts::times}});

}  // namespace plumb
