// make_rec: an image folder to a RecordIO file and its index.
#pragma once

#include <string>

#include "base/options/option_table.h"

namespace plumb {

struct MakeRecArguments {
  std::string folder, out;
  bool help = false, version = false;
};
OptionTable make_rec_options(MakeRecArguments& arguments);

// Returns the exit code.
int run_make_rec(int argc, const char* const* argv);

}  // namespace plumb
