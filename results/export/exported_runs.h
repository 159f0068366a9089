// Finished runs whose checks have passed, in formats of other programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/compare/samples.h"

namespace plumb {

// The runs that are exported; the others join `bad`. Throws Error(bad_data), which names the first of those,
// if no run is left.
LoadedSamples exported_runs(LoadedSamples loaded);

// A run as lines of MLPerf's logging library, for tools that read those: a log of measured steps, and no
// submission, as nothing is trained to an accuracy. One ":::MLLOG {…}" per line, as mlperf_logging.mllog of
// the package mlperf-logging writes them, with its keys: the benchmark, platform, batch, seed and optimizer;
// run_start at the first iteration's begin and run_stop at the last one's end; block_start and block_stop
// around the iterations after warm-up; their images/s over all ranks as "throughput" of tracked_stats.
// train_samples: images trained on, warm-up included. `record`: of an ok run. `started`: seconds since 1970;
// time_ms lays rank 0's step times end to end behind it, so that start-up and the pauses between steps are
// left out.
std::string mlperf_log(const RunRecord& record, std::int64_t started);

// Runs in Prometheus' text exposition format 0.0.4, for a node exporter's folder of text files.
// Gauges "plumbline_…" with their HELP and TYPE. A configuration is one series of each, its parts are the
// labels, and its value is the median of its runs; a gauge that no run of it measured is left out. `samples`:
// of finished runs with a record.
std::string prometheus_text(const std::vector<Sample>& samples);

}  // namespace plumb
