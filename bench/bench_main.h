// The main of the bench programs.
#pragma once

#include "bench/options/options.h"

namespace plumb {

// Reads the command line, and answers it or trains. Returns the exit code; what failed stands on stderr.
int run_bench(Workload workload, int argc, char** argv);

}  // namespace plumb
