// A command of a program that has several.
#pragma once

#include <functional>
#include <string>

#include "base/options/option_table.h"

namespace plumb {

struct Command {
  std::string name, help;
  // argv[0] is the command's name. Results go to stdout, messages to stderr. Returns the exit code; throws
  // Error.
  std::function<int(int argc, const char* const* argv)> run;
  // For documents: of its options only names, texts and defaults may be looked at, set and get lead nowhere.
  std::function<OptionTable()> table;
};

}  // namespace plumb
