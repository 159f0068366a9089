// The main of the bench programs, and what they answer without a job: --help, --list-targets, --dry-run, …
#pragma once

#include <optional>
#include <span>
#include <string>

#include "models/catalogue.h"

namespace plumb {

struct BenchOptions;  // declared only: the mains, compiled once per program, want none of its headers

// What goes to stdout; empty if the options ask for a run.
std::optional<std::string> answer_without_running(const std::string& program, const BenchOptions& options);

// Reads the command line, and answers it or trains. Returns the exit code; what failed stands on stderr.
int run_bench(const std::string& program, int argc, char** argv,
              std::span<const Model> catalogue = model_catalogue());

}  // namespace plumb
