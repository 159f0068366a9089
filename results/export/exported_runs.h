// Writes finished runs whose checks have passed, for Prometheus.
#pragma once

#include <string>
#include <vector>

#include "results/compare/samples.h"

namespace plumb {

// The runs that are exported; the others join `bad`. Throws Error(bad_data), which names the first of those,
// if no run is left.
LoadedSamples exported_runs(LoadedSamples loaded);

// Runs in Prometheus' text exposition format 0.0.4, for a node exporter's folder of text files.
// Gauges "plumbline_…" with their HELP and TYPE. A configuration is one series of each, its parts are the
// labels, and its value is the median of its runs; a gauge that no run of it measured is left out. `samples`:
// of finished runs with a record.
std::string prometheus_text(const std::vector<Sample>& samples);

}  // namespace plumb
