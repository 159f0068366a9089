// The example logs of every dialect: the original scripts' output, the correct output where they are wrong,
// and which dialect owns which lines.
#include "tests/results/dialect_sets.h"

#include <gtest/gtest.h>

#include <set>

#include "results/analysis/analyze.h"

namespace plumb {
namespace {

class DialectSet : public testing::TestWithParam<const Dialect*> {
 protected:
  const Dialect& dialect() const { return *GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Logs, DialectSet, testing::ValuesIn(dialects().begin(), dialects().end()),
                         [](const auto& dialect) { return std::string(dialect.param->name); });

std::string dictionary_of(const std::string& set, const Dialect& dialect, bool as_published) {
  const Analysis analysis =
      analyze_logs(kDialectData / set, {.dialect = std::string(dialect.name), .as_published = as_published});
  EXPECT_TRUE(analysis.bad.empty()) << set;
  return dictionary_text(analysis.dictionary) + "\n";
}

// The generators document the origin of the expected files.
TEST_P(DialectSet, GivesWhatTheOriginalScriptGivesByteForByte) {
  const std::string name(dialect().name);
  const std::string expected = file_text(kDialectData / ("expected_" + name + ".json"));
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(dictionary_of(set_of(dialect()), dialect(), true), expected);
  const bool script_is_wrong = &dialect() == &kPlsc;
  EXPECT_EQ(dictionary_of(set_of(dialect()), dialect(), false),
            script_is_wrong ? file_text(kDialectData / "expected_plsc_correct.json") : expected);
}

TEST_P(DialectSet, IsFoundByItsLinesUnlessAnotherReadsThemFirst) {
  const Analysis analysis = analyze_logs(kDialectData / set_of(dialect()), {});
  const bool another_is_first =
      dialect().shares_lines_with_another || (dialect().reads_own_layout() && &dialect() != &kPaddleSpeed);
  EXPECT_EQ(analysis.dialect == dialect().name, !another_is_first) << analysis.dialect;
  EXPECT_EQ(set_of(*find_dialect(analysis.dialect)), set_of(dialect()));
}

TEST_P(DialectSet, HasNoLineThatADialectOfOtherLogsClaims) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kDialectData / set_of(dialect()))) {
    if (!entry.is_regular_file()) continue;
    for (const Dialect* other : dialects()) {
      std::int64_t claimed = 0;
      LineReader lines(entry.path());
      while (const auto line = lines.next())
        if (other->read_line(*line, {.images_per_step = 128})) ++claimed;
      EXPECT_EQ(claimed > 0, set_of(*other) == set_of(dialect())) << other->name << " and " << entry.path();
    }
  }
}

TEST_P(DialectSet, IsOfAFrameworkWithPublishedNumbers) {
  const std::string published =
      file_text(std::filesystem::path(PLUMB_TEST_DATA) / "../../results/published/published.csv");
  EXPECT_NE(published.find("," + std::string(dialect().framework) + ","), std::string::npos);
}

// Sets that the scripts get wrong: "pytorch_ranks" and "pytorch" of "expected_pytorch_ranks.pytorch.json".
struct Special {
  std::string set;
  const Dialect* dialect;
};
std::vector<Special> special_sets() {
  std::vector<Special> sets;
  for (const auto& entry : std::filesystem::directory_iterator(kDialectData)) {
    const std::string name = entry.path().stem().string();
    const std::size_t dot = name.find('.');
    if (name.starts_with("expected_") && dot != std::string::npos)
      sets.push_back({name.substr(9, dot - 9), find_dialect(name.substr(dot + 1))});
  }
  return sets;
}
class SpecialSet : public testing::TestWithParam<Special> {};
INSTANTIATE_TEST_SUITE_P(Logs, SpecialSet, testing::ValuesIn(special_sets()), [](const auto& special) {
  return special.param.set + "_by_" + std::string(special.param.dialect->name);
});

TEST_P(SpecialSet, GivesAsPublishedWhatTheOriginalScriptGives) {
  const auto& [set, dialect] = GetParam();
  EXPECT_EQ(dictionary_of(set, *dialect, true),
            file_text(kDialectData / ("expected_" + set + "." + std::string(dialect->name) + ".json")));
}

TEST_P(SpecialSet, GivesWhatIsRightWithAWarningOtherwise) {
  const auto& [set, dialect] = GetParam();
  const std::string correct =
      file_text(kDialectData / ("correct_" + set + "." + std::string(dialect->name) + ".json"));
  if (correct.empty()) return;
  EXPECT_EQ(dictionary_of(set, *dialect, false), correct);
  const Analysis analysis = analyze_logs(kDialectData / set, {.dialect = std::string(dialect->name)});
  ASSERT_FALSE(analysis.notes.empty());
  EXPECT_NE(analysis.notes.front().find("published script"), std::string::npos) << analysis.notes.front();
}

TEST(SpecialSets, OfShortLogsLoseTheLogsAndNoMore) {
  const std::vector<Special> sets{{"pytorch_short", &kPytorch},
                                  {"ngc_pytorch_short", &kNgcPytorchTime},
                                  {"ngc_tf_short", &kNgcTfSpeed},
                                  {"ngc_tf_short", &kNgcTfTime}};
  for (const auto& [set, dialect] : sets) {
    const Analysis analysis = analyze_logs(kDialectData / set, {.dialect = std::string(dialect->name)});
    ASSERT_EQ(analysis.bad.size(), 2U) << set;
    EXPECT_EQ(analysis.bad[0].defect.flaw, Flaw::truncated);
    ASSERT_EQ(analysis.cases.size(), 1U);
    EXPECT_EQ(analysis.cases[0].case_name, "1n1g");
  }
}

}  // namespace
}  // namespace plumb
