// `plumbline sweep`: the runs of a sweep file, one after the other, and the table of them all.
#pragma once

#include "bench/options/option_table.h"

namespace plumb {

// argv[0] is the subcommand. Throws Error.
int sweep_command(int argc, const char* const* argv);
OptionTable sweep_table();

}  // namespace plumb
