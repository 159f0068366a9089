// `plumbline make-rec`: an image folder to a RecordIO file.
#pragma once

#include "bench/options/option_table.h"

namespace plumb {

// argv[0] is the subcommand. Prints one line to stdout: what was written. Throws Error.
int make_rec_command(int argc, const char* const* argv);
OptionTable make_rec_table();

}  // namespace plumb
