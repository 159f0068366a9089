#include "base/options/completions.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"

namespace plumb {
namespace {

// {0}: the program. Bash completes only what follows a "=", and passes it as the second argument. The script
// for zsh lies in $fpath, where compinit finds it, or is loaded by `source <(PROGRAM --completions zsh)`.
constexpr const char* kBash = R"sh(_plumbline_{0}() {{
  mapfile -t COMPREPLY < <("$1" --complete "${{COMP_LINE:0:COMP_POINT}}" "${{2#=}}" 2>/dev/null)
}}
complete -o default -F _plumbline_{0} {0}
)sh";

constexpr const char* kZsh = R"sh(#compdef {0}
_{0}() {{
  compadd -- ${{(f)"$($words[1] --complete "${{(j: :)words[1,CURRENT]}}" 2>/dev/null)"}} || _files
}}
if [ "$funcstack[1]" = _{0} ]; then
  _{0}
else
  compdef _{0} {0}
fi
)sh";

constexpr const char* kFish = R"sh(function _plumbline_{0}
  set -l words (commandline -opc)
  $words[1] --complete (commandline -cp) 2>/dev/null; or __fish_complete_path (commandline -ct)
end
complete -c {0} -f -a '(_plumbline_{0})'
)sh";

}  // namespace

std::string completions(const std::string& shell, const std::string& program) {
  constexpr const char* kScripts[]{kBash, kZsh, kFish};
  return fmt::format(fmt::runtime(kScripts[parse_choice("--completions", shell, completion_shells())]),
                     program);
}

std::vector<std::string> completion_files(const std::string& shell, const std::string& program) {
  if (shell == "zsh") return {"zsh/site-functions/_" + program, "zsh/vendor-completions/_" + program};
  if (shell == "fish") return {"fish/vendor_completions.d/" + program + ".fish"};
  return {"bash-completion/completions/" + program};
}

std::vector<std::string> candidates(const std::string& line, const OptionTable& table,
                                    const std::vector<Command>& commands) {
  std::vector<std::string> words = split(line, ' ');
  const std::string word = words.back();
  words.pop_back();
  std::erase(words, "");
  OptionTable used = table;
  std::vector<std::string> offered;
  for (const Command& command : commands) {
    if (words.size() < 2) offered.push_back(command.name);
    if (words.size() >= 2 && words[1] == command.name) used = command.table();
  }
  const std::size_t equals = word.starts_with('-') ? word.find('=') : std::string::npos;
  const std::string before = equals < word.size() ? word.substr(0, equals)
                             : words.empty()      ? ""
                                                  : words.back();
  for (const OptionSpec* spec : all_options(used)) {
    if (spec->is_positional()) continue;
    if (!spec->values.empty() && std::ranges::count(spec->names, before) > 0) {
      const std::string kept = word.substr(0, equals < word.size() ? equals + 1 : 0);
      offered = mapped(spec->values, [&](const std::string& value) { return kept + value; });
      break;
    }
    if (word.starts_with('-') || !offered.empty())
      offered.insert(offered.end(), spec->names.begin(), spec->names.end());
  }
  std::erase_if(offered, [&](const std::string& candidate) { return !candidate.starts_with(word); });
  return offered;
}

OptionTable table_before_commands(const std::string& program) {
  OptionSpec shell = make_option("--completions", "SHELL", "print completions for a shell");
  shell.values = completion_shells();
  return {program,
          "",
          {{"Options",
            {make_option("--help,-h", "", "print the commands"),
             make_option("--version", "", "print version and libraries"), std::move(shell)}}}};
}

std::optional<int> answer_to_shell(int argc, const char* const* argv,
                                   const std::function<OptionTable()>& table,
                                   const std::vector<Command>& commands) {
  if (argc < 3 || std::string_view(argv[1]) != "--complete") return std::nullopt;
  const std::string line = argv[2];
  const std::string last = split(line, ' ').back();
  const std::string word = argc > 3 ? argv[3] : last;
  const std::size_t kept = last.ends_with(word) ? last.size() - word.size() : 0;
  const std::vector<std::string> found = candidates(line, table(), commands);
  for (const std::string& candidate : found) std::puts(candidate.c_str() + kept);
  return found.empty() ? 1 : 0;
}

}  // namespace plumb
