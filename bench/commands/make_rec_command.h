// `plumbline make-rec`: an image folder to a RecordIO file.
#pragma once

namespace plumb {

// argv[0] is the subcommand. Prints one line to stdout: what was written. Throws Error.
void make_rec_command(int argc, const char* const* argv);

}  // namespace plumb
