// `plumbline compare`: runs beside runs, and beside what is published.
#pragma once

#include "bench/options/option_table.h"

namespace plumb {

// argv[0] is the subcommand. Prints the comparison to stdout and what was left out to stderr. Throws Error:
// bad_data where a path has nothing usable or configurations differ and --force isn't given, usage for
// options that can't be.
int compare_command(int argc, const char* const* argv);
OptionTable compare_table();

}  // namespace plumb
