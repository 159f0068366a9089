// What shells want to complete a program's commands, options and values.
#pragma once

#include <string>
#include <vector>

#include "base/options/command.h"
#include "base/options/option_table.h"

namespace plumb {

// What is completed: a program's own options, and its commands with theirs.
struct CompletedProgram {
  struct Subcommand {
    std::string name, help;
    OptionTable table;
  };
  std::string name;
  OptionTable table;
  std::vector<Subcommand> commands;  // empty: the program has none
};

CompletedProgram completed(const OptionTable& table);
// plumbline: --help, --version and --completions, then the commands.
CompletedProgram completed(const std::string& program, const std::vector<Command>& commands);

// A script that the shell, one of completion_shells(), sources. File names are offered where nothing else is
// known to fit. Throws Error(usage) for another shell.
std::string completions(const std::string& shell, const CompletedProgram& program);
// Where such scripts are looked for, below share/: "fish/vendor_completions.d/plumbline.fish". Debian's zsh
// reads another folder than zsh elsewhere.
std::vector<std::string> completion_files(const std::string& shell, const std::string& program);

std::string bash_completions(const CompletedProgram& program);
std::string zsh_completions(const CompletedProgram& program);
std::string fish_completions(const CompletedProgram& program);

}  // namespace plumb
