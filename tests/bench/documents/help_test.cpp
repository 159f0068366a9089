// --help and --help-all of every program.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "bench/allreduce/allreduce_options.h"
#include "bench/make_rec.h"
#include "bench/options/options.h"
#include "plumbline/command.h"

namespace plumb {
namespace {

std::vector<OptionTable> all_tables() {
  static BenchOptions resnet50 = default_options("bench_resnet50"),
                      arcface = default_options("bench_arcface");
  static AllreduceOptions allreduce;
  static MakeRecArguments make_rec;
  std::vector<OptionTable> tables{bench_option_table(resnet50), bench_option_table(arcface),
                                  allreduce_option_table(allreduce), make_rec_options(make_rec)};
  for (const Command& command : plumbline_commands()) tables.push_back(command.table());
  return tables;
}

bool shows(const std::string& help, const OptionSpec& spec) {
  return std::ranges::any_of(std::string(" ,\n"), [&](char end) {
    return help.find("\n  " + spec.names.front() + end) != std::string::npos;
  });
}

TEST(Help, FitsAScreen) {
  for (const OptionTable& table : all_tables()) {
    const std::string help = help_text(table, Shown::in_help);
    EXPECT_LE(std::ranges::count(help, '\n'), 50) << help;
    EXPECT_NE(help.find("\nExamples:\n  "), std::string::npos) << help;
    for (const std::string& line : split(help_text(table, Shown::in_help_all), '\n'))
      EXPECT_LE(std::ranges::count_if(line, [](unsigned char c) { return (c & 0xC0) != 0x80; }), 100) << line;
  }
}

TEST(Help, ShowsRareOptionsWhenAskedForAllAndInternalOnesNever) {
  for (const OptionTable& table : all_tables()) {
    const std::string help = help_text(table, Shown::in_help), all = help_text(table, Shown::in_help_all);
    for (const OptionSpec* spec : all_options(table)) {
      EXPECT_EQ(shows(help, *spec), spec->shown == Shown::in_help) << table.program << spec->names.front();
      EXPECT_EQ(shows(all, *spec), spec->shown != Shown::in_documents)
          << table.program << spec->names.front();
    }
  }
}

TEST(Help, GivesAValueALineOfItsOwn) {
  const OptionTable table{
      .program = "sample",
      .description = "Samples.",
      .groups = {{"Group", {make_option("--form", "a|b", "the form\na: round\nb: square")}}}};
  const std::string right(34, ' ');
  EXPECT_EQ(help_text(table, Shown::in_help), "Usage: sample [options]\n\nSamples.\n\nGroup:\n  --form a|b" +
                                                  std::string(22, ' ') + "the form\n" + right +
                                                  "  a: round\n" + right + "  b: square\n");
}

// The options of an example are the program's, up to "--".
TEST(Help, ExamplesUseOptionsThatExist) {
  for (const OptionTable& table : all_tables()) {
    std::set<std::string> known;
    for (const OptionSpec* spec : all_options(table)) known.insert(spec->names.begin(), spec->names.end());
    for (const std::string& example : table.examples) {
      const std::string command = example.substr(0, example.find(" # "));
      const std::size_t begin = command.find(table.program);
      ASSERT_NE(begin, std::string::npos) << example;
      EXPECT_LT(command.size(), example.size()) << example << " has no meaning";
      for (const std::string& word : split(command.substr(begin + table.program.size()), ' ')) {
        if (word == "--") break;
        EXPECT_TRUE(!word.starts_with('-') || known.contains(word)) << word << " in " << example;
      }
    }
  }
}

}  // namespace
}  // namespace plumb
