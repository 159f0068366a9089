// The commands of `plumbline`: one list drives the program, its help, completions and man page.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "bench/options/option_table.h"

namespace plumb {

struct Command {
  std::string name, help;
  // argv[0] is the command's name. Results go to stdout, messages to stderr. Returns the exit code; throws
  // Error.
  int (*run)(int argc, const char* const* argv);
  // For documents: of its options only names, texts and defaults may be looked at, set and get lead nowhere.
  OptionTable (*table)();
};

extern const Command kAnalyzeCommand, kCompareCommand, kExplainCommand, kGateCommand, kMakeRecCommand,
    kPublishedCommand, kReportCommand, kSweepCommand;

// All of them, by name.
const std::vector<Command>& plumbline_commands();

// Parses into `arguments` (which has a member help) by the table; true: --help was given and has been
// printed.
template <typename Arguments>
bool helped(const OptionTable& table, const Arguments& arguments, int argc, const char* const* argv) {
  parse_command_line(table, argc, argv);
  if (arguments.help) std::fputs(help_text(table).c_str(), stdout);
  return arguments.help;
}

// A command's table bound to arguments that don't outlive it.
template <typename Arguments>
OptionTable table_of(OptionTable (*options)(Arguments&)) {
  Arguments arguments;
  return options(arguments);
}

}  // namespace plumb
