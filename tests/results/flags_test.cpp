#include "results/anomalies/flags.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/results/run_folder.h"
#include "tests/results/simulated_steps.h"

namespace plumb {
namespace {

RunRecord steady_run() {
  SimulatedNoise noise("run");
  RunRecord record;
  record.status = "ok";
  record.iterations = 120;
  record.warmup = 20;
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

bool has(const std::vector<Flag>& flags, Flag::Kind kind) {
  return std::any_of(flags.begin(), flags.end(), [kind](const Flag& flag) { return flag.kind == kind; });
}

TEST(RunFlags, OfASteadyRunAreNone) {
  EXPECT_TRUE(run_flags(steady_run()).empty());
  RunRecord stepless;
  stepless.status = "ok";
  EXPECT_TRUE(run_flags(stepless).empty());
}

TEST(RunFlags, NameTheRankThatOthersWaitFor) {
  RunRecord record = steady_run();
  record.ranks = ranks_waiting({0.0120, 0.0118, 0.0121, 0.0119, 0.0122, 0.0030, 0.0120, 0.0117}, 4);
  const auto flags = run_flags(record);
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].kind, Flag::Kind::slow_rank);
  EXPECT_EQ(flags[0].sentence, "rank 5 on node2 is 9 % slower than the others");
}

// Waits and times of two hosts with two ranks each, the last of which is slow.
std::vector<RankRecord> ranks_computing(const std::vector<double>& computes,
                                        const std::vector<double>& data) {
  std::vector<RankRecord> ranks = ranks_waiting({0.111, 0.111, 0.111, 0}, 2);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].compute_seconds = computes[i];
    ranks[i].data_wait_seconds = data[i];
  }
  return ranks;
}

TEST(SlowRankFlags, TellHowLongTheRankComputesAndAtWhichClock) {
  const auto ranks = ranks_computing({0.301, 0.3, 0.302, 0.412}, {0, 0, 0, 0});
  EXPECT_EQ(
      slow_rank_flags(ranks, 0.412).at(0).sentence,
      "rank 3 on node2 computes 412 ms a step where the median is 301 ms: the others wait 27 % of a step "
      "for it");
  std::vector<GpuRecord> gpus(4);
  for (int rank = 0; rank < 4; ++rank) {
    gpus[std::size_t(rank)].rank = rank;
    gpus[std::size_t(rank)].sm_clock_mhz = {1200, rank == 3 ? 1410.0 : 1980.0, 1980};
  }
  gpus[3].clock_reasons = {{"power cap", 0.83}};
  const std::string sentence = slow_rank_flags(ranks, 0.412, gpus).at(0).sentence;
  EXPECT_TRUE(
      sentence.ends_with("for it; rank 3's GPU ran at 1410 MHz (power cap 83 %), the others' at 1980 MHz"))
      << sentence;
}

TEST(SlowRankFlags, TellThatTheRankWaitsForData) {
  const auto ranks = ranks_computing({0.301, 0.3, 0.302, 0.3}, {0.001, 0.001, 0.001, 0.112});
  EXPECT_EQ(
      slow_rank_flags(ranks, 0.412).at(0).sentence,
      "rank 3 on node2 waits 112 ms a step for data where the median is 1 ms: the others wait 27 % of a "
      "step for it");
}

TEST(RunFlags, NameAStallOfAFewStepsOnceAndShortOnesOfLongRunsNever) {
  RunRecord record = steady_run();
  record.step_seconds[57] = 15.2;
  auto flags = run_flags(record);
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].kind, Flag::Kind::outliers);
  EXPECT_EQ(flags[0].sentence, "the run stalled: iteration 57 took 15.2 s, 152 times the median of 0.1 s");
  record.step_seconds[80] = 3;
  EXPECT_EQ(run_flags(record).at(0).sentence,
            "the run stalled 2 times: iteration 57 took 15.2 s, 152 times the median of 0.1 s at most");
  std::vector<double> steps(2000, 0.001);
  steps[7] = 0.006;
  EXPECT_FALSE(stall_flag(steps, 0)) << "5 ms of 2 s";
  EXPECT_TRUE(stall_flag(std::vector<double>{0.1, 0.1, 0.1, 0.6}, 2)) << "short runs stall, too";
  EXPECT_FALSE(stall_flag(std::vector<double>{0.1, 0.1, 0.1, 0.4}, 2));
}

TEST(RunFlags, DoubtWaitsThatAreLongerThanTheStep) {
  RunRecord record = steady_run();
  record.exposed_communication_seconds = 0.1467;
  const auto flags = run_flags(record);
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_NE(flags[0].sentence.find("waits 146.7 ms a step by its record, which is longer"), std::string::npos)
      << flags[0].sentence;
}

TEST(RunFlags, NameOddHosts) {
  RunRecord record = steady_run();
  record.odd_hosts = {"host n3 is unlike the others: CPUs 4 where most have 8"};
  EXPECT_EQ(run_flags(record).at(0).sentence, record.odd_hosts[0]);
}

TEST(RunFlags, CallARunOnASharedGpuACheck) {
  RunRecord record = steady_run();
  record.ranks_per_gpu = 4;
  EXPECT_EQ(run_flags(record).at(0).sentence, "4 ranks share one GPU: a check, not a speed");
}

TEST(RunFlags, NameALossThatGrowsByMagnitudes) {
  RunRecord record = example_run(30);
  record.loss.back() = 7.1e6;
  const std::vector<Flag> flags = run_flags(record);
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].sentence, "the loss grew from 7 to 7.1e+06: training diverges, lower --lr");
  record.loss.back() = 9.5;
  EXPECT_TRUE(run_flags(record).empty());
}

TEST(SlowRankFlags, NameAWholeNode) {
  std::vector<double> waits(16, 0.02);
  for (std::size_t rank = 8; rank < 16; ++rank) waits[rank] = 0.008;
  const auto flags = slow_rank_flags(ranks_waiting(waits, 8), 0.1);
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].sentence, "ranks 8 to 15 on node2 are 12 % slower than the others");
}

TEST(SlowRankFlags, NameRanksOfSeveralNodes) {
  std::vector<double> waits(8, 0.02);
  waits[1] = waits[3] = waits[6] = 0.01;
  const auto flags = slow_rank_flags(ranks_waiting(waits, 4), 0.1);
  ASSERT_EQ(flags.size(), 2u);
  EXPECT_EQ(flags[0].sentence, "ranks 1 and 3 on node1 are 10 % slower than the others");
  EXPECT_EQ(flags[1].sentence, "rank 6 on node2 is 10 % slower than the others");
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
      found +=
          flags.size() == 1 && flags[0].sentence.starts_with("rank " + std::to_string(count - 1) + " on");
    }
    EXPECT_LE(blamed, kRuns / 500) << count;
    EXPECT_GE(found, kRuns * 99 / 100) << count;
  }
}

TEST(SlowRankFlags, NeedRanksThatWereWatched) {
  EXPECT_TRUE(slow_rank_flags({}, 0.1).empty());
  EXPECT_TRUE(slow_rank_flags(ranks_waiting({0.02}, 8), 0.1).empty());
  EXPECT_TRUE(slow_rank_flags(ranks_waiting({0.02, std::nan("")}, 8), 0.1).empty());
}

TEST(RunFlags, NameFailedChecks) {
  RunRecord record = steady_run();
  record.checks["replicas_identical"] = false;
  auto flags = run_flags(record);
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].kind, Flag::Kind::failed_check);
  EXPECT_EQ(flags[0].sentence, "the check replicas_identical failed");
  record.status = "failed";
  record.failure = "rank 3 was lost";
  flags = run_flags(record);
  ASSERT_EQ(flags.size(), 2u);
  EXPECT_EQ(flags[0].sentence, "the run failed: rank 3 was lost");
}

TEST(RunFlags, NameTheGpusThatWereThrottledLongest) {
  RunRecord record = steady_run();
  for (int rank = 0; rank < 6; ++rank) {
    GpuRecord gpu;
    gpu.rank = rank;
    gpu.throttled_share = rank == 0 ? 0.04 : 0.1 * rank;
    gpu.clock_reasons = {{"power cap", gpu.throttled_share}};
    record.gpus.push_back(gpu);
  }
  const auto flags = run_flags(record);
  ASSERT_EQ(flags.size(), 4u);
  EXPECT_EQ(flags[0].sentence, throttling_text(record.gpus[5]));
  EXPECT_EQ(flags[0].sentence.substr(0, 51), "rank 5's GPU was throttled in 50 % of the window (p");
  EXPECT_EQ(flags[3].sentence, "2 more GPUs were throttled, too");
}

TEST(RunFlags, SayThatComputeWaitedForData) {
  RunRecord record = steady_run();
  record.data_wait_seconds = 0.012;
  const auto flags = run_flags(record);
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].kind, Flag::Kind::note);
  EXPECT_EQ(flags[0].sentence, "compute waits 12 % of a step for data");
}

// The slow steps of an unfinished warm-up or of a second level aren't also reported as outliers.
TEST(RunFlags, SayOneThingOnce) {
  RunRecord record = steady_run();
  for (std::size_t i = 20; i < 35; ++i) record.step_seconds[i] *= 1.5;
  auto flags = run_flags(record);
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].kind, Flag::Kind::warmup_not_over);
  record = steady_run();
  for (std::size_t i = 20; i < 120; i += 4) record.step_seconds[i] *= 1.5;
  flags = run_flags(record);
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].kind, Flag::Kind::two_modes);
}

TEST(RunFlags, DontLookAtStepsThatAreNone) {
  RunRecord record = steady_run();
  record.step_seconds[50] = std::nan("");
  EXPECT_TRUE(run_flags(record).empty());
}

TEST(SampleFlags, NameARunFarOff) {
  const auto flags = sample_flags(sample_of({100.1, 99.8, 100.4, 88, 100.2, 99.6, 99.9}));
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].kind, Flag::Kind::outlier_run);
  EXPECT_EQ(
      flags[0].sentence,
      "runs/4 is 12 % slower than the mean of the other 6 runs (88.00 images/s against 100.00 images/s)");
}

TEST(SampleFlags, SayThatAFewRunsAreFarApart) {
  const auto flags = sample_flags(sample_of({29.8, 15.5, 30.1}));
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].kind, Flag::Kind::outlier_run);
  EXPECT_EQ(
      flags[0].sentence,
      "3 runs differ by 94 %, from 15.50 images/s to 30.10 images/s: too few to tell which is off, run 5 "
      "or more");
  EXPECT_TRUE(sample_flags(sample_of({100, 109})).empty());
  EXPECT_TRUE(sample_flags(sample_of({100})).empty());
}

TEST(SampleFlags, NameTwoGroupsOfRuns) {
  const auto flags = sample_flags(sample_of({100, 92, 100.2, 100.4, 92.3, 99.8, 92.1}));
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].kind, Flag::Kind::two_modes);
  EXPECT_EQ(
      flags[0].sentence,
      "the runs fall into two groups: 3 at about 92.10 images/s and 4 at about 100.10 images/s, 8.7 % more");
}

TEST(SampleFlags, AreRareAndFindWhatIsFarOff) {
  SimulatedNoise noise("samples");
  constexpr int kSamples = 3000;
  for (const double spread : {0.002, 0.008, 0.02}) {
    int false_alarms = 0, outliers = 0, groups = 0;
    for (int i = 0; i < kSamples; ++i) {
      std::vector<double> figures = noise.figures(7, 100, spread);
      false_alarms += !sample_flags(sample_of(figures)).empty();
      std::vector<double> one_slow = figures;
      one_slow[3] *= 0.88;
      outliers += has(sample_flags(sample_of(one_slow)), Flag::Kind::outlier_run);
      for (std::size_t run = 0; run < 3; ++run) figures[run] *= 0.9;
      groups += has(sample_flags(sample_of(figures)), Flag::Kind::two_modes);
    }
    EXPECT_LE(false_alarms, kSamples * 2 / 100) << spread;
    if (spread > 0.01) continue;
    EXPECT_GE(outliers, kSamples * 95 / 100) << spread;
    EXPECT_GE(groups, kSamples * 85 / 100) << spread;
  }
}

TEST(SampleFlags, PutTheRunBeforeItsOwn) {
  Sample sample = sample_of({100, 101});
  sample.runs[1].record = steady_run();
  sample.runs[1].record->data_wait_seconds = 0.05;
  const auto flags = sample_flags(sample);
  ASSERT_EQ(flags.size(), 1u);
  EXPECT_EQ(flags[0].sentence, "runs/2: compute waits 50 % of a step for data");
}

}  // namespace
}  // namespace plumb
