// A run as lines of MLPerf's logging library, for tools that read those: a log of measured steps, and no
// submission, as nothing is trained to an accuracy.
#pragma once

#include <cstdint>
#include <string>

#include "results/record/schema.h"

namespace plumb {

// One ":::MLLOG {…}" per line, as mlperf_logging.mllog of the package mlperf-logging writes them, with its
// keys: the benchmark, platform, batch, seed and optimizer; run_start at the first iteration's begin and
// run_stop at the last one's end; block_start and block_stop around the iterations after warm-up; their
// images/s over all ranks as "throughput" of tracked_stats. train_samples: images trained on, warm-up
// included. `record`: of an ok run. `started`: seconds since 1970; time_ms lays rank 0's step times end to
// end behind it, so that start-up and the pauses between steps are left out.
std::string mlperf_log(const RunRecord& record, std::int64_t started);

}  // namespace plumb
