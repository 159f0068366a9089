// What bash's `source` wants to complete a program's options, and their values where there is a list of them.
#pragma once

#include <string>
#include <vector>

#include "bench/commands/command.h"
#include "bench/options/option_table.h"

namespace plumb {

// Options, their values, and file names where neither fits.
std::string bash_completions(const OptionTable& table);

// For a program with commands: their names first, then the same for the command that was given.
std::string bash_completions(const std::string& program, const std::vector<Command>& commands);

}  // namespace plumb
