// `plumbline analyze`: a folder of logs to a table.
#pragma once

#include "bench/options/option_table.h"

namespace plumb {

// argv[0] is the subcommand. Prints the table to stdout and what was left out to stderr. Throws Error.
int analyze_command(int argc, const char* const* argv);
OptionTable analyze_table();

}  // namespace plumb
