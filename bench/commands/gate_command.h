// `plumbline gate`: exit code 1 where runs are slower than a baseline.
#pragma once

#include "bench/options/option_table.h"

namespace plumb {

// argv[0] is the subcommand. Prints a table or JSON to stdout, what was left out to stderr. Returns 0 or 1;
// throws Error (bad_data where a case can't be judged, after all has been printed).
int gate_command(int argc, const char* const* argv);
OptionTable gate_option_table();

}  // namespace plumb
