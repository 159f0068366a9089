#include "base/options/completions.h"
#include "base/text.h"

namespace plumb {
namespace {

// Shell that sets `names`, and `values` where the word before the present one is an option that has a list;
// `prefix`: what stands before the last comma where it takes several. `indent`: blanks in front of every
// line.
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

// At the first word the commands and the program's own options, later those of the command.
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

}  // namespace plumb
