// Which runs go to other programs: finished ones whose checks have passed.
#pragma once

#include <string>

#include "results/compare/samples.h"

namespace plumb {

// Why a run isn't exported, with the remedy; empty if it is.
std::string why_not_exported(const Measurement& run);

// The runs that are exported; the others join `bad`. Throws Error(bad_data), which names the first of those,
// if no run is left.
LoadedSamples exported_runs(LoadedSamples loaded);

}  // namespace plumb
