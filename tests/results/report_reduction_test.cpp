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

// Two persistent parameters, one activation used by instructions 0 and 2, a view into the other one.
Json small_program() {
  const auto step = [](const char* name, std::vector<int> buffers) {
    Json uses = Json::array();
    for (const int buffer : buffers) uses.push_back({{"buffer", buffer}});
    return Json{{"name", name}, {"uses", uses}};
  };
  const auto buffer = [](const char* role, int bytes, int offset) {
    return Json{{"role", role}, {"bytes", bytes}, {"offset", offset}};
  };
  Json program{{"arena_bytes", 4000}};
  program["buffers"] = {buffer("parameter", 1000, 0), buffer("parameter", 1000, 1000),
                        buffer("activation", 500, 2000), buffer("activation", 300, 2000),
                        buffer("activation", 100, 2000)};
  program["buffers"][0]["persistent"] = program["buffers"][1]["persistent"] = true;
  program["buffers"][4]["view"] = {{"of", 3}, {"offset", 0}};
  program["ops"] = {step("a", {0, 2}), step("b", {}), step("c", {2, 3}), step("d", {}), step("e", {4, 1})};
  return program;
}

TEST(MemoryUse, AddsUpBuffersFromFirstToLastUse) {
  const MemoryUse use = memory_use(small_program(), "program.json");
  EXPECT_EQ(use.arena_bytes, 4000);
  EXPECT_EQ(use.instructions, 5);
  EXPECT_EQ(use.names, (std::vector<std::string>{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(use.role_bytes.at("parameter"), std::vector<std::int64_t>(5, 2000));
  EXPECT_EQ(use.role_bytes.at("activation"), (std::vector<std::int64_t>{500, 500, 800, 300, 300}))
      << "a use of the view is a use of the buffer";
}

TEST(MemoryUse, LongProgramsKeepTheMostOfNeighbors) {
  const MemoryUse use = memory_use(small_program(), "program.json", 3);
  EXPECT_EQ(use.per_entry, 2);
  EXPECT_EQ(use.names, (std::vector<std::string>{"a", "c", "e"}));
  EXPECT_EQ(use.role_bytes.at("activation"), (std::vector<std::int64_t>{500, 800, 300}));
}

TEST(MemoryUse, RefusesWhatCannotBe) {
  Json program = small_program();
  program["buffers"][2]["bytes"] = std::numeric_limits<std::int64_t>::max();
  expect_error(ExitCode::bad_data, {"program.json", "bytes"}, [&] { memory_use(program, "program.json"); });
  program = small_program();
  program["ops"][0]["uses"][0]["buffer"] = 99;
  expect_error(ExitCode::bad_data, {"program.json", "buffer"}, [&] { memory_use(program, "program.json"); });
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
