// How runs are reduced to the data a page can show.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "results/report/run_parts.h"
#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

TEST(StepTimes, ShortRunsKeepEveryIteration) {
  const StepTimes times = step_times(std::vector<double>{0.5, 0.1, 0.2}, 1);
  EXPECT_EQ(times.per_entry, 1);
  EXPECT_EQ(times.warmup, 1);
  EXPECT_EQ(times.median_seconds, (std::vector<double>{0.5, 0.1, 0.2}));
}

TEST(StepTimes, LongRunsKeepRangeAndMedianOfNeighbors) {
  const StepTimes times = step_times(std::vector<double>{1, 2, 9, 4, 5, 6, 7}, 2, 3);
  EXPECT_EQ(times.iterations, 7);
  EXPECT_EQ(times.per_entry, 3);
  EXPECT_EQ(times.min_seconds, (std::vector<double>{1, 4, 7}));
  EXPECT_EQ(times.median_seconds, (std::vector<double>{2, 5, 7}));
  EXPECT_EQ(times.max_seconds, (std::vector<double>{9, 6, 7}));
}

TEST(StepHistogram, CountsEveryStepInBinsOfRoundWidth) {
  std::vector<double> seconds;
  for (int i = 0; i < 1000; ++i) seconds.push_back(0.1 + 1e-5 * (i % 100));
  const StepHistogram histogram = step_histogram(seconds);
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), std::int64_t{0}), 1000);
  EXPECT_DOUBLE_EQ(histogram.width_seconds, 1e-4);  // 2 × 0.5 ms ÷ ∛1000
  EXPECT_NEAR(histogram.low_seconds, 0.1, 1e-12);
  EXPECT_EQ(histogram.counts.size(), 10U);
  for (const std::int64_t count : histogram.counts) EXPECT_EQ(count, 100);
  EXPECT_EQ(histogram.above, 0);
}

TEST(StepHistogram, AStallDoesNotStretchTheBins) {
  std::vector<double> seconds;
  for (int i = 0; i < 200; ++i) seconds.push_back(0.1 + 1e-5 * (i % 10));
  const std::size_t bins = step_histogram(seconds).counts.size();
  seconds.push_back(30);
  const StepHistogram histogram = step_histogram(seconds);
  EXPECT_EQ(histogram.above, 1);
  EXPECT_EQ(histogram.counts.size(), bins);
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), std::int64_t{0}), 200);
}

TEST(StepHistogram, EqualStepsFillOneBin) {
  const StepHistogram histogram = step_histogram(std::vector<double>(50, 0.25));
  ASSERT_EQ(histogram.counts, std::vector<std::int64_t>{50});
  EXPECT_LE(histogram.low_seconds, 0.25);
  EXPECT_GT(histogram.low_seconds + histogram.width_seconds, 0.25);
  EXPECT_EQ(histogram.median_seconds, 0.25);
  EXPECT_EQ(histogram.max_seconds, 0.25);
  EXPECT_TRUE(step_histogram({}).counts.empty());
}

TEST(StepHistogram, PercentilesNeedAHundredSteps) {
  std::vector<double> seconds;
  for (int i = 1; i <= 99; ++i) seconds.push_back(i);
  EXPECT_FALSE(step_histogram(seconds).p1_seconds || step_histogram(seconds).p99_seconds);
  EXPECT_EQ(step_histogram(seconds).min_seconds, 1);
  EXPECT_EQ(step_histogram(seconds).max_seconds, 99);
  seconds.push_back(100);
  EXPECT_EQ(step_histogram(seconds).p1_seconds, 1);
  EXPECT_EQ(step_histogram(seconds).p99_seconds, 99);
}

TEST(StepHistogram, WhatIsNoTimeIsNotCounted) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const StepHistogram histogram = step_histogram(std::vector<double>{nan, 0.25, 0, -1, 0.25});
  EXPECT_EQ(histogram.counts, std::vector<std::int64_t>{2});
}

TEST(RunProfile, StepsComeLongestFirst) {
  const auto step = [](const char* name, double seconds) {
    return Json{{"name", name},          {"kind", "conv_forward"},  {"phase", "forward"},
                {"lane", "compute"},     {"seconds", seconds},      {"roofline_seconds", 1e-6},
                {"flops_per_second", 1}, {"bytes_per_second", 2.5}, {"bound_by", "compute"}};
  };
  Json json;
  json["device"] = "some CPU";
  for (const char* key : {"peak_flops_per_second", "peak_bytes_per_second", "iteration_seconds",
                          "busy_seconds", "gap_seconds", "roofline_seconds"})
    json[key] = 1.0;
  json["kinds"] =
      Json::array({{{"name", "conv_forward"}, {"ops", 2}, {"seconds", 3e-6}, {"roofline_seconds", 2e-6}}});
  json["ops"] = {step("a", 1e-6), step("b", 2e-6)};
  json["ops"][1]["engine"] = "eng0";
  const RunProfile profile = run_profile(json, "profile.json", 1);
  ASSERT_EQ(profile.instructions.size(), 1U);
  EXPECT_EQ(profile.instructions[0].name, "b");
  EXPECT_EQ(profile.instructions[0].engine, "eng0");
  EXPECT_EQ(profile.kinds[0].instructions, 2);
  EXPECT_EQ(run_profile(json, "profile.json").instructions[1].engine, "");
  json["ops"][0]["seconds"] = nullptr;
  expect_error(ExitCode::bad_data, {"profile.json", "seconds"}, [&] { run_profile(json, "profile.json"); });
  json["ops"][0].erase("seconds");
  expect_error(ExitCode::bad_data, {"profile.json", "seconds"}, [&] { run_profile(json, "profile.json"); });
}

}  // namespace
}  // namespace plumb
