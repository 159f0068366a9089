// The lengths of runs, from the results that they left near their logs.
#pragma once

#include <filesystem>
#include <map>

#include "results/dialects/dialect.h"

namespace plumb {

// Iterations and warm-up of the finished runs whose result.json names logs that are there, by the canonical
// path of each log. Reads folders named "runs", the default of --out: beside `log_dir`, one level above it
// and in the working directory. If several runs name one log, the latest counts. A result that can't be read
// is passed over.
std::map<std::filesystem::path, Window> run_lengths(const std::filesystem::path& log_dir);

}  // namespace plumb
