// `plumbline published`: the numbers that frameworks publish.
#pragma once

#include "bench/options/option_table.h"

namespace plumb {

// argv[0] is the subcommand. Prints the rows that all options match, with their sources. Throws Error(usage)
// where none does.
int published_command(int argc, const char* const* argv);
OptionTable published_option_table();

}  // namespace plumb
