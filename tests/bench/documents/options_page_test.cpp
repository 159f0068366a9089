// docs/reference/options.md, as the tables of options give it.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "bench/allreduce/allreduce_options.h"
#include "bench/make_rec.h"
#include "bench/options/options.h"
#include "plumbline/command.h"
#include "tests/golden_text.h"

namespace plumb {
namespace {

// Text that Markdown shows as it is, also in a cell of a table.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (std::string("|<>*_").find(letter) != std::string::npos) out += '\\';
    out += letter;
  }
  return out;
}

// "| `--bs N`, `--batch-per-device N` | images per device (default: 8) |".
std::string row_of(const OptionSpec& spec) {
  std::string names;
  for (const std::string& name : spec.names) {
    const std::string written = name + (spec.value_name.empty() ? "" : " " + spec.value_name);
    append_part(names, "`" + replaced(written, '|', "\\|") + "`");
  }
  std::string meaning;
  for (const std::string& line : spec.help_lines()) append_part(meaning, escaped(line), "<br>");
  return "| " + names + " | " + meaning + " |";
}

class OptionsPage {
 public:
  // A section with a table for each group of options, or with one of all.
  void add(const OptionTable& table, bool by_groups) {
    add_head(table, "");
    if (!by_groups) text_ += kHead;
    for (const OptionGroup& group : table.groups) add_group(group, by_groups, {});
  }
  // A section of the options that `other` lacks, or has with another text.
  void add_differences(const OptionTable& table, const OptionTable& other) {
    std::set<std::string> known, names;
    for (const OptionSpec* spec : all_options(other)) known.insert(row_of(*spec));
    for (const OptionSpec* spec : all_options(table)) names.insert(spec->names.front());
    std::string lacking;
    for (const OptionSpec* spec : all_options(other))
      if (!names.contains(spec->names.front())) append_part(lacking, "`" + spec->names.front() + "`");
    add_head(table, " It has the options of " + other.program + " except " + lacking + ", and these:");
    for (const OptionGroup& group : table.groups) add_group(group, true, known);
  }
  std::string text() const { return text_; }

 private:
  void add_head(const OptionTable& table, const std::string& more) {
    text_ += "\n## " + table.program + "\n\n" + escaped(table.description) + more + "\n";
  }
  void add_group(const OptionGroup& group, bool with_title, const std::set<std::string>& known) {
    std::string rows;
    for (const OptionSpec& spec : group.options)
      if (!known.contains(row_of(spec)) && !spec.names.front().starts_with("--help"))
        rows += row_of(spec) + "\n";
    if (rows.empty()) return;
    if (with_title) text_ += "\n### " + escaped(group.title) + "\n" + kHead;
    text_ += rows;
  }

  static constexpr const char* kHead = "\n| option | meaning |\n|---|---|\n";
  std::string text_ =
      "# Options\n\nThe programs' own tables of options, as `--help-all` and the manual pages show them; "
      "`--help` shows the usual ones. "
      "`PLUMB_UPDATE=1 build/release/bin/bench_tests --gtest_filter='OptionsPage.*'` rewrites this page.\n";
};

TEST(OptionsPage, ListsEveryOptionOfEveryProgram) {
  OptionsPage page;
  BenchOptions resnet50 = default_options("bench_resnet50"), arcface = default_options("bench_arcface");
  page.add(bench_option_table(resnet50), true);
  page.add_differences(bench_option_table(arcface), bench_option_table(resnet50));
  AllreduceOptions allreduce;
  page.add(allreduce_option_table(allreduce), true);
  MakeRecArguments make_rec;
  page.add(make_rec_options(make_rec), false);
  for (const Command& command : plumbline_commands()) page.add(command.table(), false);
  expect_golden("../../docs/reference/options.md", page.text());
}

}  // namespace
}  // namespace plumb
