// Questions that a program answers without a job and without a device: --help, --version, --list-targets,
// --completions, --dry-run.
#pragma once

#include <optional>
#include <string>

#include "bench/options/options.h"

namespace plumb {

// What goes to stdout; empty if the options ask for a run.
std::optional<std::string> answer_without_running(const std::string& program, const BenchOptions& options);

}  // namespace plumb
