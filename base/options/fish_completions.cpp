#include "base/options/completions.h"
#include "base/text.h"

namespace plumb {
namespace {

std::string quoted_for_fish(const std::string& text) {
  return "'" + replaced(replaced(text, '\\', "\\\\"), '\'', "\\'") + "'";
}

// " -l output -s o"
std::string names_for_fish(const OptionSpec& spec) {
  std::string text;
  for (const std::string& name : spec.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  return text;
}

// Whether a value follows, and which: -x has no file names among them. An option that may stand alone asks
// for none.
std::string value_for_fish(const OptionSpec& spec) {
  if (spec.is_flag() || !spec.bare_value.empty()) return "";
  if (spec.values.empty()) return " -r -F";
  const std::string values = fmt::format("{}", fmt::join(spec.values, " "));
  return " -x -a " + quoted_for_fish(spec.joins_values ? "(__fish_append , " + values + ")" : values);
}

// One line for each option; `condition`: when they are offered.
std::string lines_of(const std::string& program, const OptionTable& table, const std::string& condition) {
  std::string lines;
  for (const OptionSpec* spec : all_options(table))
    if (!spec->is_positional())
      lines += "complete -c " + program + condition + names_for_fish(*spec) + value_for_fish(*spec) + " -d " +
               quoted_for_fish(split(spec->help, '\n').front()) + "\n";
  return lines;
}

bool takes_arguments(const OptionTable& table) {
  for (const OptionSpec* spec : all_options(table))
    if (spec->is_positional()) return true;
  return false;
}

}  // namespace

std::string fish_completions(const CompletedProgram& program) {
  const std::string begin = "complete -c " + program.name;
  const std::string is_first = program.commands.empty() ? "" : " -n 'test (count (commandline -opc)) -eq 1'";
  std::string text = "# fish completion for " + program.name + "\n";
  if (!takes_arguments(program.table)) text += begin + is_first + " -f\n";
  for (const CompletedProgram::Subcommand& command : program.commands)
    text += begin + is_first + " -a " + command.name + " -d " + quoted_for_fish(command.help) + "\n";
  text += lines_of(program.name, program.table, is_first);
  for (const CompletedProgram::Subcommand& command : program.commands) {
    const std::string condition = " -n 'contains -- " + command.name + " (commandline -opc)[2]'";
    if (!takes_arguments(command.table)) text += begin + condition + " -f\n";
    text += lines_of(program.name, command.table, condition);
  }
  return text;
}

}  // namespace plumb
