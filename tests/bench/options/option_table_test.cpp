#include "base/options/option_table.h"

#include <gtest/gtest.h>

#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

enum class Form { round, square };

struct Sample {
  std::int64_t count = 3;
  std::uint64_t seed = 0;
  std::optional<int> run;
  double rate = 0.5;
  std::string path = "here";
  Form shape = Form::round;
  bool check = true, loud = false, quiet = false, version = false;
  std::string folder;
};

OptionTable make_table(Sample& sample) {
  OptionTable table;
  table.program = "sample";
  table.description = "A program that samples.";
  table.groups = {
      {"Numbers",
       {number_option("--count,--number-of-things", "N", sample.count, {.lowest = 1, .highest = 1000},
                      "how many"),
        number_option("--seed", "N", sample.seed, {}, "where randomness starts"),
        number_option("--run", "K", sample.run, {.lowest = 1}, "which run").with_default("next free"),
        number_option(
            "--rate", "X", sample.rate, {.lowest = 0, .highest = 2, .above_lowest = true},
            "a help that is long enough to be wrapped into several lines of the right column, because it "
            "goes on and on")}},
      {"Others",
       {text_option("--path", "P", sample.path, "a path"),
        enum_option<Form>("--shape", sample.shape, {{"round", Form::round}, {"square", Form::square}},
                          "form"),
        flag_option("--no-check", sample.check, false, "leave checks out").with_key("check"),
        flag_option("--loud", sample.loud, true, "say more").in_set("loudness"),
        flag_option("--quiet", sample.quiet, true, "say less").in_set("loudness"),
        stop_option("--version", sample.version, "print the version"),
        positional("FOLDER", sample.folder, "where")}}};
  return table;
}

Sample parse_sample(const std::vector<std::string>& arguments) {
  Sample sample;
  std::vector<const char*> argv = {"sample"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  parse_command_line(make_table(sample), static_cast<int>(argv.size()), argv.data());
  return sample;
}

void expect_sample_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& words) {
  SCOPED_TRACE(arguments.front());
  expect_error(ExitCode::usage, words, [&] { parse_sample(arguments); });
}

TEST(OptionTable, KeepsDefaultsOfWhatIsNotGiven) {
  const Sample sample = parse_sample({});
  EXPECT_EQ(sample.count, 3);
  EXPECT_EQ(sample.path, "here");
  EXPECT_FALSE(sample.run.has_value());
}

TEST(OptionTable, ReadsEveryKind) {
  const Sample sample =
      parse_sample({"in", "--number-of-things", "7", "--seed=18446744073709551615", "--run", "2", "--rate",
                    "1e-3", "--path", "a b", "--shape", "square", "--no-check", "--loud"});
  EXPECT_EQ(sample.count, 7);
  EXPECT_EQ(sample.seed, 18446744073709551615U);
  EXPECT_EQ(sample.run, 2);
  EXPECT_DOUBLE_EQ(sample.rate, 1e-3);
  EXPECT_EQ(sample.path, "a b");
  EXPECT_EQ(sample.shape, Form::square);
  EXPECT_FALSE(sample.check);
  EXPECT_TRUE(sample.loud);
  EXPECT_EQ(sample.folder, "in");
}

TEST(OptionTable, RefusesWhatIsNotWhollyANumberInRange) {
  for (const char* bad :
       {"abc", "0", "12x", "1001", "-1", "1.5", "1e2", " 5", "99999999999999999999", "0x10", "nan"})
    expect_sample_refused({"--count", bad},
                          {"--count " + std::string(bad) + ": expected a whole number from 1 to 1000"});
  for (const char* bad : {"nan", "inf", "0", "2.01", "1e999", "1,5", "1.5e", "-1"})
    expect_sample_refused({"--rate", bad}, {"--rate", bad, "a number above 0 and of at most 2"});
  expect_sample_refused({"--seed", "18446744073709551616"}, {"--seed", "18446744073709551616"});
  expect_sample_refused({"--seed", "-1"}, {"--seed", "-1"});
}

TEST(OptionTable, ReadsAShareAsPercentOrAsANumber) {
  double share = 0.07;
  const OptionSpec spec = percent_option("--share", share, {.lowest = 0, .highest = 1}, "how much");
  EXPECT_EQ(spec.default_text, "7%");
  spec.set("2.5%");
  EXPECT_DOUBLE_EQ(share, 0.025);
  spec.set("0.3");
  EXPECT_DOUBLE_EQ(share, 0.3);
  for (const char* bad : {"2", "101%", "-1%", "%", "1%%", "x", "nan", ""})
    expect_error(ExitCode::usage, {"--share", "from 0 to 1", "pass it as 2% or 0.02"},
                 [&] { spec.set(bad); });
  EXPECT_DOUBLE_EQ(share, 0.3);
}

TEST(OptionTable, FlagsTakeNoValue) {
  expect_sample_refused({"--no-check=1"}, {"--no-check accepts no value"});
  expect_sample_refused({"--no-check=false", "--count", "3"}, {"--no-check"});
  EXPECT_EQ(parse_sample({"--path=--loud=1"}).path, "--loud=1");
}

TEST(OptionTable, ARepeatedArgumentTakesAllValuesBeforeAndBehindOptions) {
  std::vector<std::string> paths;
  Sample sample;
  const OptionTable table{.program = "p",
                          .description = "",
                          .groups = {{"A",
                                      {positional("PATH…", paths, "where").as_required(),
                                       text_option("-o,--output", "FILE", sample.path, "there")}}}};
  const char* argv[] = {"p", "a", "-o", "out", "b", "c"};
  parse_command_line(table, 6, argv);
  EXPECT_EQ(paths, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(sample.path, "out");
  const char* none[] = {"p", "-o", "out"};
  expect_error(ExitCode::usage, {"PATH… is missing"}, [&] { parse_command_line(table, 3, none); });
}

TEST(OptionTable, ConfigurationIsInTheTablesOrder) {
  Sample sample = parse_sample({"--no-check", "--rate", "2"});
  const nlohmann::ordered_json config = config_json(make_table(sample));
  EXPECT_EQ(config.dump(),
            R"({"count":3,"seed":0,"run":null,"rate":2.0,"path":"here","shape":"round","check":false,)"
            R"("loud":false,"quiet":false,"folder":""})");
}

TEST(OptionTable, WordsBehindDashesGoToTheArgumentThatAsksForThem) {
  const auto words_behind = [](const std::vector<const char*>& argv) {
    Sample sample;
    std::vector<std::string> words;
    OptionTable table = make_table(sample);
    table.groups.back().options.push_back(positional("WORD…", words, "passed on").as_words_behind_dashes());
    table.groups.back().options.erase(table.groups.back().options.end() - 2);  // FOLDER takes the first one
    parse_command_line(table, static_cast<int>(argv.size()), argv.data());
    return words;
  };
  const std::vector<std::string> expected{"--count", "--loud=2", "--", "-x"};
  EXPECT_EQ(words_behind({"sample", "--path", "p", "--", "--count", "--loud=2", "--", "-x"}), expected);
  EXPECT_EQ(words_behind({"sample", "--loud", "--", "--count", "--loud=2", "--", "-x"}), expected);
  EXPECT_TRUE(words_behind({"sample", "--path", "p", "--"}).empty());
}

}  // namespace
}  // namespace plumb
