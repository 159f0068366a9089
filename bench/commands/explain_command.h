// `plumbline explain`: a framework's profiler trace beside a run's own profile.
#pragma once

#include "bench/options/option_table.h"

namespace plumb {

// argv[0] is the subcommand. Prints a table, or one JSON object. Throws Error: usage if the trace says that
// it is of another configuration, unless --force is given.
int explain_command(int argc, const char* const* argv);
OptionTable explain_table();

}  // namespace plumb
