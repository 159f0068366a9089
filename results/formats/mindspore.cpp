// MindSpore with a data sink, for every epoch of one iteration or more two lines of each rank. Published
// script: DLPerf c89430b, MindSpore/resnet50v1.5/extract_mindspore_logs_time.py. It takes epoch·step for the
// number of iterations, adds the times of all lines and divides by the number of ranks, whether all of them
// have written or not.
#include "base/text.h"
#include "results/formats/log_format.h"

namespace plumb {
namespace {
namespace mindspore {

// Both lines of every rank.
std::string line(const LoggedInterval& interval, const RunSize& size) {
  const double milliseconds = size.images_per_step / interval.images_per_second * 1000;
  return once_per_rank(
      fmt::format("epoch: {} step: 1, loss is {:.6f}\nepoch time: {:.3f} ms, per step time: {:.3f} ms",
                  interval.last + 1, interval.loss, milliseconds, milliseconds),
      size);
}

constexpr SpeedFormat kFormat(
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
     .write = line,
     .script_note = "the published script divides by all ranks, even if some have not written, so its "
                    "figures differ from these",
     .script_lines = FormatFacts::one_per_rank},
    {.seconds = 0.001, .mean = SpeedFacts::times});

}  // namespace mindspore
}  // namespace

const LogFormat& kMindspore = mindspore::kFormat;

}  // namespace plumb
