// What shells want to complete a program's commands, options and values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/options/option_table.h"

namespace plumb {

// A command of a program that has several.
struct Command {
  std::string name, help;
  // argv[0] is the command's name. Results go to stdout, messages to stderr. Returns the exit code; throws
  // Error.
  std::function<int(int argc, const char* const* argv)> run;
  // For documents: of its options only names, texts and defaults may be looked at, set and get lead nowhere.
  std::function<OptionTable()> table;
};

// A script that the shell, one of completion_shells(), sources. It calls `PROGRAM --complete LINE [WORD]` for
// the words that fit. If no word fits, the shell offers file names. Throws Error(usage) for another shell.
std::string completions(const std::string& shell, const std::string& program);
// Where such scripts are looked for, below share/: "fish/vendor_completions.d/plumbline.fish". Debian's zsh
// reads another folder than zsh elsewhere.
std::vector<std::string> completion_files(const std::string& shell, const std::string& program);

// The words that complete the last one of a command line: options, values of an option, commands.
std::vector<std::string> candidates(const std::string& line, const OptionTable& table,
                                    const std::vector<Command>& commands = {});
// The options of a program with commands: --help, --version and --completions.
OptionTable table_before_commands(const std::string& program);

// If the arguments are `--complete LINE [WORD]`: prints the candidates, without what the shell keeps before
// WORD, and returns the exit code, which is 1 without candidates.
std::optional<int> answer_to_shell(int argc, const char* const* argv,
                                   const std::function<OptionTable()>& table,
                                   const std::vector<Command>& commands = {});

}  // namespace plumb
