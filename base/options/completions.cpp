#include "base/options/completions.h"

#include "base/text.h"

namespace plumb {
namespace {

// Shell code that sets `names` to the options and, after an option with a list of values, `values` to them.
// For an option that takes several values, `prefix` becomes the ones already typed. Each line begins with
// `indent`.
std::string settings_of(const OptionTable& table, const std::string& indent) {
  std::string names, cases;
  for (const OptionSpec* spec : all_options(table)) {
    if (spec->is_positional()) continue;
    append_part(names, fmt::format("{}", fmt::join(spec->names, " ")), " ");
    if (!spec->values.empty())
      cases += fmt::format("{}  {}) values='{}'{} ;;\n", indent, fmt::join(spec->names, " | "),
                           fmt::join(spec->values, " "),
                           spec->joins_values ? " prefix=${word%\"${word##*,}\"}" : "");
  }
  if (!cases.empty()) cases = indent + "case $before in\n" + cases + indent + "esac\n";
  return indent + "names='" + names + "'\n" + cases;
}

// The first word is a command or one of the program's own options; after a command its options follow.
std::string settings_of(const CompletedProgram& program) {
  if (program.commands.empty()) return settings_of(program.table, "  ");
  std::string names, cases;
  for (const CompletedProgram::Subcommand& command : program.commands) {
    names += command.name + " ";
    cases += "    *:" + command.name + ")\n" + settings_of(command.table, "      ") + "      ;;\n";
  }
  return "  case $COMP_CWORD:${COMP_WORDS[1]} in\n"
         "    1:*)\n" +
         settings_of(program.table, "      ") + "      names='" + names + "'$names\n" + "      ;;\n" + cases +
         "    *)\n" + settings_of(program.table, "      ") +
         "      ;;\n"
         "  esac\n";
}

std::string quoted_for_zsh(const std::string& text) {
  return "'" + replaced(text, '\'', "'\\''") + "'";
}

// Text inside a specification of _arguments, where `marks` have a meaning.
std::string zsh_text(std::string text, const std::string& marks) {
  text = replaced(text, '\\', "\\\\");
  for (const char mark : marks) text = replaced(text, mark, std::string("\\") + mark);
  return text;
}

// The options that exclude this one, as zsh wants them: "(--fp32 --tf32)"; empty if there are none.
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
      if (name.starts_with("--")) name += '=';  // zsh then accepts "--bs=8" and "--bs 8"
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

// "--a=b" comes as three words.
std::string bash_completions(const CompletedProgram& program) {
  const std::string function = "_plumbline_" + program.name;
  return "# bash completion for " + program.name + "\n" + function +
         "() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} names= values= "
         "prefix=\n"
         "  if [ \"$word\" = = ]; then\n"
         "    word=\n"
         "  elif [ \"$before\" = = ]; then\n"
         "    before=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "  fi\n" +
         settings_of(program) +
         "  COMPREPLY=()\n"
         "  if [ -n \"$values\" ]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -P \"$prefix\" -W \"$values\" -- \"${word#\"$prefix\"}\")\n"
         "  elif [[ $word == -* || $names != -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$names\" -- \"$word\")\n"
         "  fi\n"
         "}\n"
         "complete -o default -F " +
         function + " " + program.name + "\n";
}

// Can be installed in $fpath, where compinit finds it, or loaded by `source <(PROGRAM --completions zsh)`.
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
