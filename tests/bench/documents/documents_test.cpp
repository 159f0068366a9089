// Manual pages and completions, as rendered by man and by the shells.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>

#include "base/options/completions.h"
#include "base/options/man_page.h"
#include "bench/allreduce/allreduce_options.h"
#include "bench/man_pages.h"
#include "bench/options/options.h"
#include "bench/output/log_writer.h"
#include "plumbline/command.h"
#include "tests/bench/expect_error.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

OptionTable table_of_bench(const std::string& program) {
  static BenchOptions resnet50 = default_options("bench_resnet50"),
                      arcface = default_options("bench_arcface");
  return bench_option_table(program == "bench_arcface" ? arcface : resnet50);
}

OptionTable table_of_allreduce() {
  static AllreduceOptions options;
  return allreduce_option_table(options);
}

std::string page_of_bench(const std::string& program) {
  return man_page(bench_man_page(table_of_bench(program), "train"), "1.2.3");
}

std::string page_of_plumbline() {
  return man_page(plumbline_man_page(plumbline_commands(), "[sweep]\n\nseed = 1 # .5 'a' \\\n.x = 3"),
                  "1.2.3");
}

std::vector<std::string> names_of(const OptionTable& table) {
  std::vector<std::string> names;
  for (const OptionGroup& group : table.groups)
    for (const OptionSpec& spec : group.options)
      names.insert(names.end(), spec.names.begin(), spec.names.end());
  return names;
}

// The page as groff renders it, on one long line; empty without groff.
std::string rendered(const std::string& page) {
  if (std::system("command -v groff >/dev/null") != 0) return "";
  const ScratchFolder scratch;
  scratch.write("page", page);
  const std::string command = "groff -Kutf8 -man -Tutf8 -P-c -P-b -P-u -ww -rLL=400n '" + scratch.path() +
                              "/page' >'" + scratch.path() + "/text' 2>'" + scratch.path() + "/warnings'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_text(scratch.path() + "/warnings"), "");
  return read_text(scratch.path() + "/text");
}

// Matches "--bs" but not "--bs-something".
bool has_word(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const char next = at + word.size() < text.size() ? text[at + word.size()] : ' ';
    if (!std::isalnum(static_cast<unsigned char>(next)) && next != '-') return true;
  }
  return false;
}

void expect_all_options(const std::string& text, const OptionTable& table) {
  for (const std::string& name : names_of(table))
    EXPECT_TRUE(has_word(text, name)) << table.program << " " << name;
}

TEST(ManPage, ShowsEveryOptionOfEveryTableWithoutWarnings) {
  for (const char* program : {"bench_resnet50", "bench_arcface"}) {
    const std::string text = rendered(page_of_bench(program));
    if (text.empty()) GTEST_SKIP() << "no groff";
    expect_all_options(text, table_of_bench(program));
    EXPECT_NE(text.find("(default: 120)") != std::string::npos,
              text.find("(default: 150)") != std::string::npos);
  }
  expect_all_options(rendered(man_page(allreduce_man_page(table_of_allreduce()), "1.2.3")),
                     table_of_allreduce());
  const std::string text = rendered(page_of_plumbline());
  for (const Command& command : plumbline_commands()) {
    const OptionTable table = command.table();
    const std::size_t begin = text.find("\n   " + table.program + "\n");
    ASSERT_NE(begin, std::string::npos) << table.program;
    expect_all_options(text.substr(begin, text.find("\n   plumbline ", begin + 5) - begin), table);
  }
}

TEST(ManPage, KeepsWhatRoffWouldTakeForItself) {
  const std::string text = rendered(page_of_plumbline());
  if (text.empty()) GTEST_SKIP() << "no groff";
  EXPECT_NE(text.find("seed = 1 # .5 'a' \\\n"), std::string::npos) << text;
  EXPECT_NE(text.find(".x = 3"), std::string::npos) << text;
}

// The table in this section of a page of docs/reference has exactly these rows, and manual pages have them
// too.
void expect_table(const std::string& page, const std::string& heading,
                  const std::vector<std::pair<std::string, std::string>>& texts) {
  std::istringstream document(read_text(PLUMB_TEST_DATA "/../../docs/reference/" + page));
  std::vector<std::string> rows, expected;
  bool inside = false;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("## ")) inside = line == heading;
    if (inside && line.starts_with("| ")) rows.push_back(line);
  }
  if (!rows.empty()) rows.erase(rows.begin());  // the table's head
  for (const auto& [name, text] : texts) expected.push_back("| " + name + " | " + text + " |");
  EXPECT_EQ(rows, expected);
  for (const std::string& manual : {page_of_bench("bench_resnet50"), page_of_plumbline()})
    for (const auto& [name, text] : texts)
      EXPECT_NE(manual.find(".TP\n\\fB" + name + "\\fR\n"), std::string::npos) << name;
}

TEST(ManPage, ListsTheExitCodesOfTheDocuments) {
  expect_table("exit-codes.md", "## Exit codes", exit_code_texts());
}

TEST(ManPage, ListsTheVariablesOfTheDocuments) {
  expect_table("environment.md", "## Plumbline's own", variable_texts());
}

// Bash's completions for the last of `words`.
std::set<std::string> offered(const std::string& script, const std::vector<std::string>& words) {
  const ScratchFolder scratch;
  std::string line = "source '" + scratch.write("completions", script).string() + "'; COMP_WORDS=(";
  for (const std::string& word : words) line += "'" + word + "' ";
  line += "); COMP_CWORD=" + std::to_string(words.size() - 1) + "; _plumbline_" + words.front() +
          "; printf '%s\\n' \"${COMPREPLY[@]}\"";
  scratch.write("line", line);
  const std::string command = "bash '" + scratch.path() + "/line' >'" + scratch.path() + "/out' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_text(scratch.path() + "/out");
  std::istringstream out(read_text(scratch.path() + "/out"));
  std::set<std::string> found;
  for (std::string word; std::getline(out, word);)
    if (!word.empty()) found.insert(word);
  return found;
}

using Words = std::set<std::string>;

TEST(Completions, CompleteOptionsAndTheirValues) {
  const std::string script = bash_completions(completed(table_of_bench("bench_resnet50")));
  EXPECT_EQ(offered(script, {"bench_resnet50", "--warm"}), Words{"--warmup"});
  EXPECT_EQ(offered(script, {"bench_resnet50", "--bs", "16", "--no-"}),
            (Words{"--no-autotune", "--no-check", "--no-overlap", "--no-probe", "--no-watchdog"}));
  EXPECT_EQ(offered(script, {"bench_resnet50", "--device", "c"}), (Words{"cpu", "cuda"}));
  EXPECT_EQ(offered(script, {"bench_resnet50", "--device", "=", "cu"}), Words{"cuda"});
  EXPECT_EQ(offered(script, {"bench_resnet50", "--device", "="}), (Words{"auto", "cpu", "cuda"}));
  EXPECT_EQ(offered(script, {"bench_resnet50", "--weights", "fi"}), Words{})
      << "file names are bash's to find";
  const std::vector<std::string> names = names_of(table_of_bench("bench_resnet50"));
  EXPECT_EQ(offered(script, {"bench_resnet50", "-"}), Words(names.begin(), names.end()));
}

TEST(Completions, CompleteCommandsAndThenTheirOptions) {
  const std::string script = bash_completions(completed("plumbline", plumbline_commands()));
  Words commands{"--completions", "--help", "--version", "-h"};
  for (const Command& command : plumbline_commands()) commands.insert(command.name);
  EXPECT_EQ(offered(script, {"plumbline", ""}), commands);
  EXPECT_EQ(offered(script, {"plumbline", "swe"}), Words{"sweep"});
  EXPECT_EQ(offered(script, {"plumbline", "sweep", "x.toml", "--res"}), Words{"--resume"});
  EXPECT_EQ(offered(script, {"plumbline", "analyze", "--log-format", "au"}), Words{"auto"});
  EXPECT_EQ(offered(script, {"plumbline", "sweep", "fi"}), Words{});
  EXPECT_EQ(offered(script, {"plumbline", "sweep"}), Words{"sweep"});
  EXPECT_EQ(offered(script, {"plumbline", "--completions", "z"}), Words{"zsh"});
}

TEST(Completions, OfferTargetsAndDialects) {
  const std::string script = bash_completions(completed(table_of_bench("bench_resnet50")));
  const std::vector<std::string> known = target_names(), written = written_formats();
  EXPECT_EQ(offered(script, {"bench_resnet50", "--target", ""}), Words(known.begin(), known.end()));
  EXPECT_EQ(offered(script, {"bench_resnet50", "--log-format", ""}), Words(written.begin(), written.end()));
  EXPECT_EQ(offered(script, {"bench_resnet50", "--log-format", "plsc,pyt"}), Words{"plsc,pytorch"});
  EXPECT_EQ(offered(script, {"bench_resnet50", "--loss-scale", ""}), (Words{"dynamic", "none"}));
  EXPECT_EQ(offered(script, {"bench_resnet50", "--completions", ""}), (Words{"bash", "fish", "zsh"}));
  Words readable{"auto"};
  for (const LogFormat* format : log_formats()) readable.emplace(format->name);
  const std::string commands = bash_completions(completed("plumbline", plumbline_commands()));
  for (const char* command : {"analyze", "compare", "gate"})
    EXPECT_EQ(offered(commands, {"plumbline", command, "--log-format", ""}), readable);
}

std::vector<CompletedProgram> all_programs() {
  return {completed(table_of_bench("bench_resnet50")), completed(table_of_bench("bench_arcface")),
          completed(table_of_allreduce()), completed("plumbline", plumbline_commands())};
}

// Exit code of `shell ARGUMENTS SCRIPT`; 0 without that shell.
int syntax_errors(const std::string& shell, const std::string& script) {
  if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0) return 0;
  const ScratchFolder scratch;
  scratch.write("script", script);
  return std::system((shell + " -n '" + scratch.path() + "/script'").c_str());
}

TEST(Completions, OfEveryShellHaveEveryOptionAndNoSyntaxError) {
  for (const CompletedProgram& program : all_programs())
    for (const std::string& shell : completion_shells()) {
      const std::string script = completions(shell, program);
      EXPECT_EQ(syntax_errors(shell, script), 0) << shell << " " << program.name;
      std::vector<std::string> names = names_of(program.table);
      for (const CompletedProgram::Subcommand& command : program.commands) {
        names.push_back(command.name);
        for (const std::string& name : names_of(command.table))
          if (name.starts_with("-")) names.push_back(name);
      }
      for (const std::string& name : names) {
        const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
        EXPECT_TRUE(has_word(script, shell == "fish" ? bare : name)) << shell << " " << name;
      }
    }
}

TEST(Completions, OfAnUnknownShellAreRefused) {
  expect_error(ExitCode::usage, {"--completions tcsh: expected one of bash, zsh, fish"},
               [] { completions("tcsh", all_programs().front()); });
}

TEST(Completions, OfZshSayWhatFitsAndWhatExcludesWhat) {
  const std::string script = zsh_completions(completed(table_of_bench("bench_resnet50")));
  EXPECT_TRUE(script.starts_with("#compdef bench_resnet50\n"));
  for (const char* wanted :
       {"'--device=[", ":auto|cuda|cpu:(auto cuda cpu)'",
        "'(--bs --batch-per-device)'{--bs=,--batch-per-device=}'[", "'(--fp32 --tf32 --fp16 --bf16)--tf32[",
        ":A,B:_sequence compadd - ", "'(- *)--version[", "'(- *)'{--help,-h}'[print what most people need]'",
        ":N:_default'"})
    EXPECT_NE(script.find(wanted), std::string::npos) << wanted << " is missing in\n" << script;
  const std::string commands = zsh_completions(completed("plumbline", plumbline_commands()));
  for (const char* wanted :
       {"'sweep:", "        gate)\n", "'*:PATH…:_files'", "'--json=[", "::FILE:_default'"})
    EXPECT_NE(commands.find(wanted), std::string::npos) << wanted << " is missing in\n" << commands;
}

// Fish's completions of a command line; nothing without fish.
std::optional<Words> offered_by_fish(const std::string& script, const std::string& line) {
  if (std::system("command -v fish >/dev/null") != 0) return std::nullopt;
  const ScratchFolder scratch;
  scratch.write("script", script);
  const std::string command = "cd '" + scratch.path() +
                              "' && HOME=. fish --no-config -c 'source script; complete -C \"" + line +
                              "\"' >out 2>/dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0) << line;
  std::istringstream out(read_text(scratch.path() + "/out"));
  Words found;
  for (std::string entry; std::getline(out, entry);) found.insert(entry.substr(0, entry.find('\t')));
  return found;
}

TEST(Completions, OfFishOfferWhatBashDoes) {
  const std::string script = fish_completions(completed(table_of_bench("bench_resnet50")));
  EXPECT_NE(script.find("complete -c bench_resnet50 -l device -x -a 'auto cuda cpu' -d '"),
            std::string::npos);
  const auto offers = [&](const std::string& line) { return offered_by_fish(script, line); };
  if (!offers("bench_resnet50 ")) GTEST_SKIP() << "fish is not installed: apt-get install fish";
  EXPECT_EQ(offers("bench_resnet50 --device c"), (Words{"cpu", "cuda"}));
  EXPECT_EQ(offers("bench_resnet50 --warm"), Words{"--warmup"});
  EXPECT_EQ(offers("bench_resnet50 --target a100-4"), Words{"a100-40gb"});
  EXPECT_EQ(offers("bench_resnet50 --log-format plsc,pyt"), Words{"plsc,pytorch"});
  EXPECT_EQ(offers("bench_resnet50 --weights scr"), Words{"script"});
  EXPECT_EQ(offers("bench_resnet50 scr"), Words{}) << "it takes no files";
  const std::string commands = fish_completions(completed("plumbline", plumbline_commands()));
  EXPECT_EQ(offered_by_fish(commands, "plumbline swe"), Words{"sweep"});
  EXPECT_EQ(offered_by_fish(commands, "plumbline sweep x.toml --res"), Words{"--resume"});
  EXPECT_EQ(offered_by_fish(commands, "plumbline analyze --log-format au"), Words{"auto"});
  EXPECT_EQ(offered_by_fish(commands, "plumbline analyze scr"), Words{"script"});
}

}  // namespace
}  // namespace plumb
