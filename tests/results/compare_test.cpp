#include "results/compare/compare.h"

#include <gtest/gtest.h>

#include "tests/bench/expect_error.h"
#include "tests/results/run_folder.h"

namespace plumb {
namespace {

// Runs around `images_per_second`, half a per cent apart.
Sample sample_of(const RunRecord& kind, double images_per_second, int runs = 7) {
  Sample sample{configuration_of(kind), {}};
  for (int i = 0; i < runs; ++i)
    sample.runs.push_back({.origin = "run" + std::to_string(i),
                           .images_per_second = images_per_second * (1 + 0.005 * (i - runs / 2))});
  return sample;
}

SampleSet set_of(const std::string& name, std::vector<Sample> samples) {
  return {name, {std::move(samples), {}}};
}

RunRecord with_batch(std::int64_t batch_per_device) {
  RunRecord record = example_run(30);
  record.batch_per_device = batch_per_device;
  return record;
}

TEST(Compare, SetsEqualConfigurationsSideBySide) {
  const std::vector<SampleSet> sets{
      set_of("a", {sample_of(with_batch(8), 100), sample_of(with_batch(16), 200)}),
      set_of("b", {sample_of(with_batch(8), 110), sample_of(with_batch(16), 200)})};
  const SetComparison compared = compare_sets(sets, {});
  ASSERT_EQ(compared.pairs.size(), 2u);
  EXPECT_EQ(compared.pairs[0].comparison.verdict, SpeedVerdict::faster);
  EXPECT_NEAR(compared.pairs[0].comparison.ratio, 1.1, 1e-9);
  EXPECT_EQ(compared.pairs[1].comparison.verdict, SpeedVerdict::none_shown);
  EXPECT_TRUE(compared.notes.empty());
}

TEST(Compare, RefusesDifferentConfigurationsAndNamesEachDifference) {
  RunRecord other = with_batch(16);
  other.precision = "bf16";
  const std::vector<SampleSet> sets{set_of("a", {sample_of(with_batch(8), 100)}),
                                    set_of("b", {sample_of(other, 100)})};
  expect_error(ExitCode::bad_data,
               {"'a' and 'b'", "precision fp32 against bf16, batch per device 8 against 16", "--force"},
               [&] { compare_sets(sets, {}); });
}

TEST(Compare, MarksWhatWasForced) {
  const std::vector<SampleSet> sets{
      set_of("a", {sample_of(with_batch(8), 100)}),
      set_of("b", {sample_of(with_batch(64), 100), sample_of(with_batch(16), 90)})};
  const SetComparison compared = compare_sets(sets, {.force = true});
  ASSERT_EQ(compared.pairs.size(), 1u);
  EXPECT_EQ(differences_text(compared.pairs[0].samples.differences), "batch per device 8 against 64");
  ASSERT_EQ(compared.notes.size(), 1u);
}

TEST(Compare, NamesSamplesWithoutACounterpart) {
  const std::vector<SampleSet> sets{
      set_of("a", {sample_of(with_batch(8), 100), sample_of(with_batch(16), 200)}),
      set_of("b", {sample_of(with_batch(8), 110), sample_of(with_batch(32), 200)})};
  const SetComparison compared = compare_sets(sets, {});
  EXPECT_EQ(compared.pairs.size(), 1u);
  ASSERT_EQ(compared.notes.size(), 2u);
  EXPECT_NE(compared.notes[0].find("a has resnet50 fp32, batch 16"), std::string::npos);
  EXPECT_NE(compared.notes[1].find("no counterpart in a (nearest: batch per device 32 against 8)"),
            std::string::npos)
      << compared.notes[1];
}

TEST(Compare, SetsAFrameworksLogsBesidePlumblinesRuns) {
  Sample logs = sample_of(with_batch(8), 80);
  logs.configuration =
      configuration_of(std::get<LogName>(parse_log_name("1n2g", "rn50_b8_fp32_1.log")), kPytorch);
  const std::vector<SampleSet> sets{set_of("logs", {logs}), set_of("runs", {sample_of(with_batch(8), 100)})};
  const SetComparison compared = compare_sets(sets, {});
  ASSERT_EQ(compared.pairs.size(), 1u);
  EXPECT_EQ(compared.pairs[0].comparison.verdict, SpeedVerdict::faster);
}

TEST(Compare, NamesHowTheWorkWasDoneAndComparesAllTheSame) {
  RunRecord other = with_batch(8);
  other.config["overlap"] = false;
  const std::vector<SampleSet> sets{set_of("a", {sample_of(with_batch(8), 100)}),
                                    set_of("b", {sample_of(other, 90)})};
  const SetComparison compared = compare_sets(sets, {});
  ASSERT_EQ(compared.pairs.size(), 1u);
  EXPECT_EQ(differences_text(compared.pairs[0].settings), "overlap as usual against false");
  EXPECT_EQ(compared.pairs[0].comparison.verdict, SpeedVerdict::slower);
}

TEST(Compare, SetsEqualSettingsSideBySideWhereBothHaveThem) {
  RunRecord without_overlap = example_run(30);
  without_overlap.world_size = 2;
  const RunRecord usual = without_overlap;
  without_overlap.config["overlap"] = false;
  const SampleSet both = set_of("both", {sample_of(usual, 100), sample_of(without_overlap, 90)});
  const SetComparison compared = compare_sets(std::vector{both, both}, {});
  ASSERT_EQ(compared.pairs.size(), 2u);
  EXPECT_TRUE(compared.pairs[0].settings.empty() && compared.pairs[1].settings.empty());
  EXPECT_TRUE(compared.notes.empty());
  const SampleSet one = set_of("one", {sample_of(usual, 100)});
  EXPECT_EQ(compare_sets(std::vector{both, one}, {}).pairs.size(), 2u);
}

TEST(Compare, ASmallerDifferenceThanTheLeastEffectIsNone) {
  const std::vector<SampleSet> sets{set_of("a", {sample_of(with_batch(8), 100)}),
                                    set_of("b", {sample_of(with_batch(8), 110)})};
  CompareOptions options;
  options.criteria.min_effect = 0.2;
  EXPECT_EQ(compare_sets(sets, options).pairs[0].comparison.verdict, SpeedVerdict::none_shown);
}

TEST(Compare, OneSetAloneHasNoPairs) {
  const std::vector<SampleSet> sets{set_of("a", {sample_of(with_batch(8), 100)})};
  EXPECT_TRUE(compare_sets(sets, {}).pairs.empty());
}

}  // namespace
}  // namespace plumb
