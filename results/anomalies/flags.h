// Anomalies of a run or of a sample, in plain sentences.
#pragma once

#include <string>
#include <vector>

#include "results/compare/samples.h"
#include "results/record/schema.h"

namespace plumb {

struct Flag {
  enum class Kind {
    warmup_not_over,
    drift,
    outliers,
    two_modes,
    throttling,
    slow_rank,
    outlier_run,
    failed_check,
    note
  };
  Kind kind = Kind::note;
  std::string sentence;  // "rank 5 on node2 is 9 % slower than the others", with its figures
};

// Within one run: the first steps behind the warm-up slower than the rest, a drift over the window, steps far
// off, two modes, GPU clocks held back, a rank for which the others wait (RunRecord::ranks).
std::vector<Flag> run_flags(const RunRecord& record);
// Between the runs of one configuration: a run far off, a few runs far apart, two groups of runs; behind them
// each run's own.
std::vector<Flag> sample_flags(const Sample& sample);

}  // namespace plumb
