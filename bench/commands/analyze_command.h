// `plumbline analyze`: a folder of logs to a table.
#pragma once

namespace plumb {

// argv[0] is the subcommand. Prints the table to stdout and what was left out to stderr. Throws Error.
void analyze_command(int argc, const char* const* argv);

}  // namespace plumb
