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
  return read_text(PLUMB_MAN_PAGES "/" + program + ".1");
}

std::string page_of_plumbline() {
  return man_page(plumbline_man_page(plumbline_commands()), "1.2.3");
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
  expect_all_options(rendered(page_of_bench("bench_allreduce")), table_of_allreduce());
  const std::string text = rendered(page_of_plumbline());
  for (const Command& command : plumbline_commands()) {
    const OptionTable table = command.table();
    const std::size_t begin = text.find("\n   " + table.program + "\n");
    ASSERT_NE(begin, std::string::npos) << table.program;
    expect_all_options(text.substr(begin, text.find("\n   plumbline ", begin + 5) - begin), table);
  }
}

TEST(ManPage, KeepsWhatRoffWouldTakeForItself) {
  const OptionTable table{
      .program = "p", .description = "", .groups = {}, .examples = {"p # .5 'a' \\", ".x = 3"}};
  const std::string text = rendered(man_page({.name = "p", .tables = {table}}, "1.2.3"));
  if (text.empty()) GTEST_SKIP() << "no groff";
  EXPECT_NE(text.find("p # .5 'a' \\\n"), std::string::npos) << text;
  EXPECT_NE(text.find(".x = 3"), std::string::npos) << text;
}

TEST(ManPage, ListsTheExitCodesAndVariablesOfTheDocuments) {
  for (const std::string& manual : {page_of_bench("bench_resnet50"), page_of_plumbline()})
    for (const char* const entry :
         {"\"0\"\ndone\n", "\"75\"\nanother rank died", "\"128 + n\"\nended by signal n",
          "\"NO_COLOR\"\nset to anything", "\"OMP_WAIT_POLICY, GOMP_SPINCOUNT\"\nif neither is set"})
      EXPECT_NE(manual.find(std::string(".TP\n.B ") + entry), std::string::npos) << entry;
}

using Words = std::set<std::string>;

Words offered(const std::string& line) {
  const bool is_bench = line.starts_with("bench_resnet50");
  const std::vector<std::string> found =
      is_bench ? candidates(line, table_of_bench("bench_resnet50"))
               : candidates(line, table_before_commands("plumbline"), plumbline_commands());
  return {found.begin(), found.end()};
}

TEST(Completions, AreOptionsAndTheirValues) {
  EXPECT_EQ(offered("bench_resnet50 --warm"), Words{"--warmup"});
  EXPECT_EQ(offered("bench_resnet50 --bs  16 --no-"),
            (Words{"--no-autotune", "--no-check", "--no-overlap", "--no-probe", "--no-watchdog"}));
  EXPECT_EQ(offered("bench_resnet50 --device c"), (Words{"cpu", "cuda"}));
  EXPECT_EQ(offered("bench_resnet50 --device=cu"), Words{"--device=cuda"});
  EXPECT_EQ(offered("bench_resnet50 --weights fi"), Words{}) << "file names are the shell's to find";
  EXPECT_EQ(offered("bench_resnet50 "), Words{});
  const std::vector<std::string> names = names_of(table_of_bench("bench_resnet50"));
  EXPECT_EQ(offered("bench_resnet50 -"), Words(names.begin(), names.end()));
}

TEST(Completions, AreCommandsAndThenTheirOptions) {
  Words commands{"--completions", "--help", "--version", "-h"};
  for (const Command& command : plumbline_commands()) commands.insert(command.name);
  EXPECT_EQ(offered("plumbline "), commands);
  EXPECT_EQ(offered("plumbline swe"), Words{"sweep"});
  EXPECT_EQ(offered("plumbline sweep x.toml --res"), Words{"--resume"});
  EXPECT_EQ(offered("plumbline analyze --log-format au"), Words{"auto"});
  EXPECT_EQ(offered("plumbline sweep fi"), Words{});
  EXPECT_EQ(offered("plumbline --completions z"), Words{"zsh"});
}

TEST(Completions, OfferTargetsAndDialects) {
  const std::vector<std::string> known = target_names(), written = written_formats();
  EXPECT_EQ(offered("bench_resnet50 --target "), Words(known.begin(), known.end()));
  EXPECT_EQ(offered("bench_resnet50 --log-format "), Words(written.begin(), written.end()));
  EXPECT_EQ(offered("bench_resnet50 --log-format=pls"), Words{"--log-format=plsc"});
  EXPECT_EQ(offered("bench_resnet50 --loss-scale "), (Words{"dynamic", "none"}));
  EXPECT_EQ(offered("bench_resnet50 --completions "), (Words{"bash", "fish", "zsh"}));
  Words readable{"auto"};
  for (const LogFormat* format : log_formats()) readable.emplace(format->name);
  for (const char* command : {"analyze", "compare", "gate"})
    EXPECT_EQ(offered("plumbline " + std::string(command) + " --log-format "), readable);
}

// What `shell` prints for `commands` after it has read its script; nothing without that shell. The program
// completed is the one that was built.
std::optional<Words> asked(const std::string& shell, const std::string& commands) {
  if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0) return std::nullopt;
  const ScratchFolder scratch;
  scratch.write("script", completions(shell, "bench_resnet50"));
  scratch.write("commands", "source ./script\n" + commands + "\n");
  const std::string line =
      "cd '" + scratch.path() + "' && HOME=. PATH='" PLUMB_BIN "':$PATH " + shell + " commands >out 2>errors";
  EXPECT_EQ(std::system(line.c_str()), 0) << read_text(scratch.path() + "/errors");
  std::istringstream out(read_text(scratch.path() + "/out"));
  Words found;
  for (std::string word; std::getline(out, word);) found.insert(word);
  return found;
}

// Bash calls the function so, with the word after "=".
Words asked_bash(const std::string& line, const std::string& word) {
  return asked("bash", "COMP_LINE='" + line + "' COMP_POINT=" + std::to_string(line.size()) +
                           "; _plumbline_bench_resnet50 bench_resnet50 '" + word +
                           "'; printf '%s\\n' \"${COMPREPLY[@]}\"")
      .value_or(Words{});
}

TEST(Completions, BashAsksTheProgram) {
  EXPECT_EQ(asked_bash("bench_resnet50 --device cu", "cu"), Words{"cuda"});
  EXPECT_EQ(asked_bash("bench_resnet50 --device=cu", "cu"), Words{"cuda"});
  EXPECT_EQ(asked_bash("bench_resnet50 --device=", "="), (Words{"auto", "cpu", "cuda"}));
  EXPECT_EQ(asked_bash("bench_resnet50 --bs 8 --warm", "--warm"), Words{"--warmup"});
}

TEST(Completions, FishAsksTheProgramAndOffersFilesOtherwise) {
  const auto asked_fish = [](const std::string& line) { return asked("fish", "complete -C '" + line + "'"); };
  if (!asked_fish("bench_resnet50 ")) GTEST_SKIP() << "fish is not installed: apt-get install fish";
  EXPECT_EQ(asked_fish("bench_resnet50 --device c"), (Words{"cpu", "cuda"}));
  EXPECT_EQ(asked_fish("bench_resnet50 --device=cu"), Words{"--device=cuda"});
  EXPECT_EQ(asked_fish("bench_resnet50 --weights scr"), Words{"script"});
}

TEST(Completions, OfAnUnknownShellAreRefused) {
  expect_error(ExitCode::usage, {"--completions tcsh: expected one of bash, zsh, fish"},
               [] { completions("tcsh", "bench_resnet50"); });
}

}  // namespace
}  // namespace plumb
