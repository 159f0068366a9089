#include "base/options/completions.h"
#include "base/text.h"

namespace plumb {
namespace {

std::string quoted_for_zsh(const std::string& text) {
  return "'" + replaced(text, '\'', "'\\''") + "'";
}

// Text inside a specification of _arguments, where `marks` have a meaning.
std::string zsh_text(std::string text, const std::string& marks) {
  text = replaced(text, '\\', "\\\\");
  for (const char mark : marks) text = replaced(text, mark, std::string("\\") + mark);
  return text;
}

// "(--fp32 --tf32)": options that aren't offered beside this one; empty: none.
std::string excluded_by(const OptionSpec& spec, const OptionTable& table) {
  if (spec.ends_parsing) return "(- *)";
  std::vector<std::string> names;
  for (const OptionSpec* other : all_options(table))
    if (other->names == spec.names ||
        (!spec.exclusive_set.empty() && other->exclusive_set == spec.exclusive_set))
      names.insert(names.end(), other->names.begin(), other->names.end());
  return names.size() < 2 ? "" : fmt::format("({})", fmt::join(names, " "));
}

// ":N:_default": the value's name and what completes it.
std::string value_part(const OptionSpec& spec) {
  if (spec.is_flag()) return "";
  std::string action = "_default";
  if (!spec.values.empty())
    action = fmt::format(fmt::runtime(spec.joins_values ? "_sequence compadd - {}" : "({})"),
                         fmt::join(spec.values, " "));
  return fmt::format("{}:{}:{}", spec.bare_value.empty() ? "" : ":", zsh_text(spec.value_name, ":"), action);
}

// "'(--bs --batch-per-device)'{--bs=,--batch-per-device=}'[images per device and step]:N:_default'"
std::string specification_of(const OptionSpec& spec, const OptionTable& table) {
  std::vector<std::string> names = spec.names;
  if (!spec.is_flag())
    for (std::string& name : names)
      if (name.starts_with("--")) name += '=';  // the value may come behind "=" too
  const std::string excluded = excluded_by(spec, table);
  const std::string rest = "[" + zsh_text(split(spec.help, '\n').front(), "[]:") + "]" + value_part(spec);
  if (names.size() == 1) return quoted_for_zsh(excluded + names.front() + rest);
  return fmt::format("{}{{{}}}{}", excluded.empty() ? "" : quoted_for_zsh(excluded), fmt::join(names, ","),
                     quoted_for_zsh(rest));
}

// _arguments with all options; `further`: specifications at its end.
std::string arguments_of(const OptionTable& table, const std::string& indent,
                         const std::vector<std::string>& further = {}) {
  std::vector<std::string> specifications;
  for (const OptionSpec* spec : all_options(table))
    specifications.push_back(spec->is_positional()
                                 ? quoted_for_zsh(fmt::format("{}:{}:_files", spec->repeated ? "*" : "",
                                                              zsh_text(spec->names.front(), ":")))
                                 : specification_of(*spec, table));
  specifications.insert(specifications.end(), further.begin(), further.end());
  return indent + "_arguments" + (further.empty() ? "" : " -C") + " \\\n" + indent + "  " +
         fmt::format("{}", fmt::join(specifications, " \\\n" + indent + "  ")) + "\n";
}

std::string body_of(const CompletedProgram& program) {
  if (program.commands.empty()) return arguments_of(program.table, "  ");
  std::string commands, cases;
  for (const CompletedProgram::Subcommand& command : program.commands) {
    commands += "        " + quoted_for_zsh(command.name + ":" + zsh_text(command.help, ":")) + "\n";
    cases += "        " + command.name + ")\n" + arguments_of(command.table, "          ") + "          ;;\n";
  }
  return "  local context state state_descr line\n"
         "  typeset -A opt_args\n" +
         arguments_of(program.table, "  ", {"'1:command:->command'", "'*::argument:->argument'"}) +
         "  case $state in\n"
         "    command)\n"
         "      local -a commands=(\n" +
         commands +
         "      )\n"
         "      _describe command commands\n"
         "      ;;\n"
         "    argument)\n"
         "      case $line[1] in\n" +
         cases +
         "      esac\n"
         "      ;;\n"
         "  esac\n";
}

}  // namespace

// Works where compinit finds it in $fpath, and behind `source <(PROGRAM --completions zsh)`.
std::string zsh_completions(const CompletedProgram& program) {
  const std::string& name = program.name;
  return fmt::format(
      "#compdef {0}\n"
      "# zsh completion for {0}\n"
      "_{0}() {{\n"
      "{1}}}\n"
      "if [ \"$funcstack[1]\" = _{0} ]; then\n"
      "  _{0} \"$@\"\n"
      "else\n"
      "  compdef _{0} {0}\n"
      "fi\n",
      name, body_of(program));
}

}  // namespace plumb
