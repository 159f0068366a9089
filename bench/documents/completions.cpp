#include "bench/documents/completions.h"

#include <algorithm>

#include "base/text.h"

namespace plumb {
namespace {

// "auto|cpu|cuda" -> "auto cpu cuda"; what is in capitals stands for a value and is left out.
std::string values_of(const OptionSpec& spec) {
  if (spec.value_name.find('|') == std::string::npos) return "";
  std::string words;
  for (const std::string& word : split(spec.value_name, '|'))
    if (std::ranges::none_of(word, [](unsigned char letter) { return std::isupper(letter); }))
      append_part(words, word, " ");
  return words;
}

// Shell that sets `names`, and `values` where the word before the present one is an option that has a list;
// `indent`: blanks in front of every line.
std::string settings_of(const OptionTable& table, const std::string& indent) {
  std::string names, cases;
  for (const OptionSpec* spec : all_options(table)) {
    if (spec->is_positional()) continue;
    append_part(names, fmt::format("{}", fmt::join(spec->names, " ")), " ");
    if (const std::string values = values_of(*spec); !values.empty())
      cases += fmt::format("{}  {}) values='{}' ;;\n", indent, fmt::join(spec->names, " | "), values);
  }
  if (!cases.empty()) cases = indent + "case $before in\n" + cases + indent + "esac\n";
  return indent + "names='" + names + "'\n" + cases;
}

// A completion whose `names` and `values` are set by `settings`. "--a=b" comes as three words.
std::string function_text(const std::string& program, const std::string& settings) {
  const std::string function = "_plumbline_" + program;
  return "# bash completion for " + program + "\n" + function +
         "() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} names= values=\n"
         "  if [ \"$word\" = = ]; then\n"
         "    word=\n"
         "  elif [ \"$before\" = = ]; then\n"
         "    before=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "  fi\n" +
         settings +
         "  COMPREPLY=()\n"
         "  if [ -n \"$values\" ]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$word\")\n"
         "  elif [[ $word == -* || $names != -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$names\" -- \"$word\")\n"
         "  fi\n"
         "}\n"
         "complete -o default -F " +
         function + " " + program + "\n";
}

}  // namespace

std::string bash_completions(const OptionTable& table) {
  return function_text(table.program, settings_of(table, "  "));
}

std::string bash_completions(const std::string& program, const std::vector<Command>& commands) {
  std::string names, cases;
  for (const Command& command : commands) {
    names += command.name + " ";
    cases += "      " + command.name + ")\n" + settings_of(command.table(), "        ") + "        ;;\n";
  }
  return function_text(program,
                       "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
                       "    names='" +
                           names +
                           "--help --version'\n"
                           "  else\n"
                           "    case ${COMP_WORDS[1]} in\n" +
                           cases +
                           "    esac\n"
                           "  fi\n");
}

}  // namespace plumb
