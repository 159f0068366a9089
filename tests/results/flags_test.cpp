#include "results/anomalies/flags.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/results/run_folder.h"
#include "tests/results/simulated_steps.h"

namespace plumb {
namespace {

RunRecord steady_run() {
  SimulatedNoise noise("run");
  RunRecord record = example_run(100);
  record.step_seconds = simulated_steps(noise, 120, {0.005, 0.3, 0});
  for (std::size_t i = 0; i < 20; ++i) record.step_seconds[i] = 2;
  record.checks = {{"replicas_identical", true}, {"loss_finite", true}, {"parameters_moved", "skipped"}};
  return record;
}

std::vector<RankRecord> ranks_waiting(const std::vector<double>& seconds, std::size_t per_host) {
  std::vector<RankRecord> ranks;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    ranks.push_back({"node" + std::to_string(i / per_host + 1), seconds[i]});
  return ranks;
}

Sample sample_of(const std::vector<double>& figures) {
  Sample sample;
  for (const double figure : figures) {
    Measurement run;
    run.origin = "runs/" + std::to_string(sample.runs.size() + 1);
    run.images_per_second = figure;
    sample.runs.push_back(run);
  }
  return sample;
}

bool has(const std::vector<Note>& flags, const char* kind) {
  return std::any_of(flags.begin(), flags.end(), [kind](const Note& flag) { return flag.kind == kind; });
}

TEST(RunFlags, NameASlowHostByTheStoredLinks) {
  RunRecord record = steady_run();
  record.links = Links{.comm = "mpi", .hosts = {{"n1"}, {"n2"}, {"n3"}, {"n4"}}};
  const auto add_pairs = [&](double slow) {
    record.links->pairs.clear();
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = i + 1; j < 4; ++j)
        record.links->pairs.push_back({record.links->hosts[i].name,
                                       record.links->hosts[j].name,
                                       {2e-5, i == 2 || j == 2 ? slow : 1.18e8}});
  };
  add_pairs(1.2e7);
  const std::vector<Note> flags = run_flags(record);
  ASSERT_EQ(flags.size(), 1U);
  EXPECT_EQ(flags[0].kind, "slow_link");
  EXPECT_EQ(flags[0].text,
            "host n3 reaches 96 Mbit/s where others reach 944 Mbit/s: every step waits for it; check its "
            "cable, port and network card, or leave the host out");
  add_pairs(1.1e8);
  EXPECT_TRUE(run_flags(record).empty());
}

TEST(RunFlags, OfASteadyRunAreNone) {
  EXPECT_TRUE(run_flags(steady_run()).empty());
  RunRecord stepless;
  stepless.status = "ok";
  EXPECT_TRUE(run_flags(stepless).empty());
}

TEST(RunFlags, NameAStallOfAFewStepsOnceAndShortOnesOfLongRunsNever) {
  RunRecord record = steady_run();
  record.step_seconds[57] = 15.2;
  auto flags = run_flags(record);
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].kind, "outliers");
  EXPECT_EQ(flags[0].text, "the run stalled: iteration 57 took 15.2 s, 152 times the median of 0.1 s");
  record.step_seconds[80] = 3;
  EXPECT_EQ(run_flags(record).at(0).text,
            "the run stalled 2 times: iteration 57 took 15.2 s, 152 times the median of 0.1 s at most");
  std::vector<double> steps(2000, 0.001);
  steps[7] = 0.006;
  EXPECT_FALSE(stall_flag(steps, 0)) << "5 ms of 2 s";
  EXPECT_TRUE(stall_flag(std::vector<double>{0.1, 0.1, 0.1, 0.6}, 2)) << "short runs stall, too";
  EXPECT_FALSE(stall_flag(std::vector<double>{0.1, 0.1, 0.1, 0.4}, 2));
}

TEST(SlowRankFlags, FindARankThatIsATenthSlowerAndBlameNoneForNoise) {
  SimulatedNoise noise("ranks");
  constexpr int kRuns = 2000;
  for (const std::size_t count : {std::size_t{2}, std::size_t{4}, std::size_t{8}, std::size_t{32}}) {
    int blamed = 0, found = 0;
    for (int i = 0; i < kRuns; ++i) {
      std::vector<double> waits;
      for (std::size_t rank = 0; rank < count; ++rank) waits.push_back(0.02 + 0.0005 * noise.normal());
      blamed += !slow_rank_flags(ranks_waiting(waits, 8), 0.1).empty();
      waits.back() -= 0.01;
      const auto flags = slow_rank_flags(ranks_waiting(waits, 8), 0.1);
      found += flags.size() == 1 && flags[0].text.starts_with("rank " + std::to_string(count - 1) + " on");
    }
    EXPECT_LE(blamed, kRuns / 500) << count;
    EXPECT_GE(found, kRuns * 99 / 100) << count;
  }
}

TEST(RunFlags, DontLookAtStepsThatAreNone) {
  RunRecord record = steady_run();
  record.step_seconds[50] = std::nan("");
  EXPECT_TRUE(run_flags(record).empty());
}

TEST(SampleFlags, AreRareAndFindWhatIsFarOff) {
  SimulatedNoise noise("samples");
  constexpr int kSamples = 3000;
  for (const double spread : {0.002, 0.008, 0.02}) {
    int false_alarms = 0, outliers = 0;
    for (int i = 0; i < kSamples; ++i) {
      const std::vector<double> figures = noise.figures(7, 100, spread);
      false_alarms += !sample_flags(sample_of(figures)).empty();
      std::vector<double> one_slow = figures;
      one_slow[3] *= 0.88;
      outliers += has(sample_flags(sample_of(one_slow)), "outlier_run");
    }
    EXPECT_LE(false_alarms, kSamples * 2 / 100) << spread;
    if (spread > 0.01) continue;
    EXPECT_GE(outliers, kSamples * 95 / 100) << spread;
  }
}

}  // namespace
}  // namespace plumb
