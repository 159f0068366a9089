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

TEST(StepTimes, LongRunsKeepRangeAndMedianOfNeighbours) {
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

// Two persistent parameters of 1 MB, one activation used by instructions 0 and 2, a view into the other one.
Json small_program() {
  const auto step = [](const char* phase, const char* lane, std::vector<int> buffers) {
    Json uses = Json::array();
    for (const int buffer : buffers) uses.push_back({{"buffer", buffer}, {"access", "r"}});
    return Json{{"name", phase}, {"phase", phase}, {"lane", lane}, {"uses", uses}};
  };
  const auto buffer = [](const char* name, const char* role, int bytes, int offset) {
    return Json{{"name", name}, {"role", role}, {"bytes", bytes}, {"offset", offset}};
  };
  Json program{{"arena_bytes", 4'000'000}};
  program["buffers"] = {
      buffer("a.weight", "parameter", 1'000'000, 0), buffer("b.weight", "parameter", 1'000'000, 1'000'000),
      buffer("out", "activation", 500'000, 2'000'000), buffer("late", "activation", 500'000, 2'000'000),
      buffer("late.view", "activation", 100'000, 2'000'000)};
  program["buffers"][0]["persistent"] = program["buffers"][1]["persistent"] = true;
  program["buffers"][4]["view"] = {{"of", 3}, {"offset", 0}};
  program["steps"] = {step("forward", "compute", {0, 2}), step("reduce", "communication", {}),
                      step("forward", "compute", {2}), step("backward", "compute", {3}),
                      step("update", "compute", {4, 1})};
  return program;
}

TEST(MemoryPicture, BlocksLiveFromFirstToLastUse) {
  const MemoryPicture picture = memory_picture(small_program(), "program.json");
  EXPECT_EQ(picture.arena_bytes, 4'000'000);
  EXPECT_EQ(picture.instructions, 5);
  ASSERT_EQ(picture.blocks.size(), 4U);
  const MemoryBlock& persistent = picture.blocks[0];
  EXPECT_EQ(persistent.name, "a.weight");
  EXPECT_EQ(persistent.first_instruction, 0);
  EXPECT_EQ(persistent.last_instruction, 4);
  const MemoryBlock& out = picture.blocks[2];
  EXPECT_EQ(out.name, "out");
  EXPECT_EQ(out.last_instruction, 2);
  const MemoryBlock& late = picture.blocks[3];
  EXPECT_EQ(late.first_instruction, 3);
  EXPECT_EQ(late.last_instruction, 4) << "a use of the view is a use of the buffer";
  ASSERT_EQ(picture.phases.size(), 3U);
  EXPECT_EQ(picture.phases[0].phase, "forward");
  EXPECT_EQ(picture.phases[0].last_instruction, 2);
}

TEST(MemoryPicture, NeighboursTooSmallToBeSeenAreOne) {
  Json program = small_program();
  program["arena_bytes"] = 4'000'000'000;
  const MemoryPicture picture = memory_picture(program, "program.json");
  ASSERT_EQ(picture.blocks.size(), 3U);
  EXPECT_EQ(picture.blocks[0].buffers, 2);
  EXPECT_EQ(picture.blocks[0].bytes, 2'000'000);
}

TEST(MemoryPicture, KeepsTheLargestAndCountsTheRest) {
  const MemoryPicture picture = memory_picture(small_program(), "program.json", 2);
  ASSERT_EQ(picture.blocks.size(), 2U);
  EXPECT_EQ(picture.blocks[1].name, "b.weight");
  EXPECT_EQ(picture.left_out, 2);
}

TEST(MemoryPicture, RefusesMoreBytesThanThereCanBe) {
  Json program = small_program();
  program["buffers"][2]["offset"] = std::numeric_limits<std::int64_t>::max();
  expect_error(ExitCode::bad_data, {"program.json", "offset"},
               [&] { memory_picture(program, "program.json"); });
}

TEST(MemoryPicture, RefusesABufferThatIsNotThere) {
  Json program = small_program();
  program["steps"][0]["uses"][0]["buffer"] = 99;
  expect_error(ExitCode::bad_data, {"runs/1/program.json", "buffer"},
               [&] { memory_picture(program, "runs/1/program.json"); });
}

Json event(const char* name, int thread, double begin, double duration, int iteration) {
  Json json{{"ph", "X"}, {"pid", 0}, {"tid", thread}, {"ts", begin}, {"dur", duration}, {"name", name}};
  if (thread > 0) json["cat"] = "forward";
  if (thread > 0) json["args"] = {{"iteration", iteration}};
  return json;
}

Json small_trace() {
  const auto name = [](const char* what, int thread, const char* text) {
    return Json{{"ph", "M"}, {"pid", 0}, {"tid", thread}, {"name", what}, {"args", {{"name", text}}}};
  };
  Json events{name("process_name", 0, "rank 0: some CPU"), name("thread_name", 0, "iterations"),
              name("thread_name", 1, "input"), name("thread_name", 2, "compute")};
  double begin = 0;
  for (const double length : {900.0, 100.0, 300.0}) {
    const int i = static_cast<int>(events.size() / 3) - 1;
    events.push_back(event("iteration", 0, begin, length, i));
    events.push_back(event("long", 2, begin, length / 2, i));
    events.push_back(event("short", 2, begin + length / 2, 10, i));
    begin += length;
  }
  return {{"traceEvents", events}};
}

TEST(RunTrace, ShowsTheIterationOfMedianLength) {
  const RunTrace trace = run_trace(small_trace(), "trace.json");
  EXPECT_EQ(trace.process, "rank 0: some CPU");
  EXPECT_EQ(trace.lanes, (std::vector<std::string>{"input", "compute"}));
  EXPECT_EQ(trace.iteration, 2);
  ASSERT_EQ(trace.spans.size(), 2U);
  EXPECT_EQ(trace.spans[0].name, "long");
  EXPECT_EQ(trace.spans[0].lane, 1U);
  EXPECT_DOUBLE_EQ(trace.spans[0].begin_seconds, 0);
  EXPECT_DOUBLE_EQ(trace.spans[0].seconds, 150e-6);
  EXPECT_NEAR(trace.spans[1].begin_seconds, 150e-6, 1e-12);
}

TEST(RunTrace, LeavesOutTheShortest) {
  const RunTrace trace = run_trace(small_trace(), "trace.json", 1);
  ASSERT_EQ(trace.spans.size(), 1U);
  EXPECT_EQ(trace.spans[0].name, "long");
  EXPECT_EQ(trace.left_out, 1);
}

TEST(RunTrace, PassesOverSpansWithoutTimes) {
  Json trace = small_trace();
  for (Json& span : trace["traceEvents"])
    if (span["name"] == "short") span["ts"] = nullptr;
  EXPECT_EQ(run_trace(trace, "trace.json").spans.size(), 1U);
}

TEST(RunTrace, RefusesATraceWithoutIterations) {
  const Json empty{{"traceEvents", Json::array()}};
  expect_error(ExitCode::bad_data, {"trace.json", "iteration"}, [&] { run_trace(empty, "trace.json"); });
  expect_error(ExitCode::bad_data, {"trace.json", "traceEvents"}, [] {
    run_trace({{"a", 1}}, "trace.json");
  });
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
      Json::array({{{"name", "conv_forward"}, {"steps", 2}, {"seconds", 3e-6}, {"roofline_seconds", 2e-6}}});
  json["steps"] = {step("a", 1e-6), step("b", 2e-6)};
  json["steps"][1]["engine"] = "eng0";
  const RunProfile profile = run_profile(json, "profile.json", 1);
  ASSERT_EQ(profile.instructions.size(), 1U);
  EXPECT_EQ(profile.instructions[0].name, "b");
  EXPECT_EQ(profile.instructions[0].engine, "eng0");
  EXPECT_EQ(profile.left_out, 1);
  EXPECT_EQ(profile.kinds[0].instructions, 2);
  EXPECT_EQ(run_profile(json, "profile.json").instructions[1].engine, "");
  json["steps"][0]["seconds"] = nullptr;
  expect_error(ExitCode::bad_data, {"profile.json", "seconds"}, [&] { run_profile(json, "profile.json"); });
  json["steps"][0].erase("seconds");
  expect_error(ExitCode::bad_data, {"profile.json", "seconds"}, [&] { run_profile(json, "profile.json"); });
}

}  // namespace
}  // namespace plumb
