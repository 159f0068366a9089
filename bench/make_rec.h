// make_rec: an image folder to a RecordIO file and its index.
#pragma once

#include <optional>
#include <string>

#include "base/options/option_table.h"

namespace plumb {

struct MakeRecArguments {
  std::string folder, out;
  std::optional<Shown> help;
  bool version = false;
};
OptionTable make_rec_options(MakeRecArguments& arguments);

// Returns the exit code.
int run_make_rec(int argc, const char* const* argv);

}  // namespace plumb
