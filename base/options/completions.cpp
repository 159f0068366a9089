#include "base/options/completions.h"

namespace plumb {

CompletedProgram completed(const OptionTable& table) {
  return {.name = table.program, .table = table, .commands = {}};
}

CompletedProgram completed(const std::string& program, const std::vector<Command>& commands) {
  OptionSpec help = make_option("--help,-h", "", "print the commands");
  OptionSpec version = make_option("--version", "", "print version and libraries");
  OptionSpec shell = make_option("--completions", "SHELL", "print completions for a shell");
  shell.values = completion_shells();
  help.ends_parsing = version.ends_parsing = shell.ends_parsing = true;
  CompletedProgram all{
      .name = program,
      .table = {.program = program, .description = "", .groups = {{"Options", {help, version, shell}}}},
      .commands = {}};
  for (const Command& command : commands)
    all.commands.push_back({command.name, command.help, command.table()});
  return all;
}

std::string completions(const std::string& shell, const CompletedProgram& program) {
  constexpr decltype(&bash_completions) kWriters[]{bash_completions, zsh_completions, fish_completions};
  return kWriters[parse_choice("--completions", shell, completion_shells())](program);
}

std::vector<std::string> completion_files(const std::string& shell, const std::string& program) {
  if (shell == "zsh") return {"zsh/site-functions/_" + program, "zsh/vendor-completions/_" + program};
  if (shell == "fish") return {"fish/vendor_completions.d/" + program + ".fish"};
  return {"bash-completion/completions/" + program};
}

}  // namespace plumb
