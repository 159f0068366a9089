// The main of the bench programs.
#pragma once

#include <string>

namespace plumb {

// Reads the command line, and answers it or trains. Returns the exit code; what failed stands on stderr.
int run_bench(const std::string& program, int argc, char** argv);

}  // namespace plumb
