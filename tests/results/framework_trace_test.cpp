#include "results/explain/framework_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>

#include "tests/bench/expect_error.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using enum StepCategory;
using TraceJson = nlohmann::ordered_json;

// Times in microseconds.
TraceJson trace_event(const std::string& category, const std::string& name, double begin, double end,
                      int thread = 1, int id = 0) {
  TraceJson event{{"ph", "X"},     {"cat", category}, {"name", name},      {"pid", 7},
                  {"tid", thread}, {"ts", begin},     {"dur", end - begin}};
  if (id != 0) event["args"] = {{"stream", 7}, {"External id", id}, {"shape", {1, 2}}};
  return event;
}
TraceJson op(const std::string& name, double begin, double end, int thread = 1, int id = 0) {
  return trace_event("cpu_op", name, begin, end, thread, id);
}
TraceJson step_mark(int number, double begin, double end) {
  return trace_event("user_annotation", "ProfilerStep#" + std::to_string(number), begin, end);
}
std::string trace_text(const std::vector<TraceJson>& events) {
  TraceJson trace{{"schemaVersion", 1}, {"deviceProperties", TraceJson::array({{{"id", 0}}})}};
  trace["traceEvents"] = events;
  trace["traceName"] = "x.json";
  return trace.dump();
}

FrameworkTrace sorted(const std::vector<TraceJson>& events) {
  const ScratchFolder folder;
  return read_framework_trace(folder.write("trace.json", trace_text(events)));
}

// Microseconds, over all steps.
double time_in(const FrameworkTrace& trace, StepCategory category) {
  return static_cast<double>(trace.time[index_of(category)]) / 1000;
}
void expect_sum(const FrameworkTrace& trace) {
  EXPECT_EQ(std::accumulate(trace.time.begin(), trace.time.end(), std::int64_t{0}), trace.total);
}

TEST(FrameworkTrace, AnyOverlapOfManyThreadsAddsUpToTheSteps) {
  const std::vector<std::string> names{"aten::conv2d", "gloo:all_reduce", "mystery",
                                       "DataLoader",   "aten::mm",        "aten::add"};
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 50; ++round) {
    std::vector<TraceJson> events{step_mark(0, 100, 400), step_mark(1, 400, 600), step_mark(2, 650, 900)};
    std::vector<int> busy(1000, 0);
    for (int i = 0; i < 40; ++i) {
      const int begin = below(950), end = begin + 1 + below(60);
      events.push_back(op(names[static_cast<std::size_t>(below(6))], begin, end, below(4)));
      for (int t = begin; t < std::min(end, 1000); ++t) busy[static_cast<std::size_t>(t)] = 1;
    }
    const FrameworkTrace trace = sorted(events);
    expect_sum(trace);
    EXPECT_EQ(trace.total, 750'000);
    const int idle = 750 - std::accumulate(busy.begin() + 100, busy.begin() + 600, 0) -
                     std::accumulate(busy.begin() + 650, busy.begin() + 900, 0);
    EXPECT_EQ(time_in(trace, gaps), idle) << round;
    for (const std::int64_t time : trace.time) EXPECT_GE(time, 0);
  }
}

// Two steps of a small network on a CPU, traced as results/peers trace; the operators inside others are left
// out.
TEST(FrameworkTrace, ARealTraceIsSortedWhole) {
  const std::string file = std::string(PLUMB_TEST_DATA) + "/explain/pytorch_cpu.json";
  const FrameworkTrace trace = read_framework_trace(file);
  double convolutions = 0, steps = 0, optimizers = 0;
  const TraceJson json = TraceJson::parse(read_text(file));
  for (const TraceJson& event : json["traceEvents"]) {
    const std::string name = event["name"];
    if (name == "aten::conv2d") convolutions += event["dur"].get<double>();
    if (name.starts_with("Optimizer.")) optimizers += event["dur"].get<double>();
    if (name.starts_with("ProfilerStep#")) steps += event["dur"].get<double>();
  }
  EXPECT_EQ(trace.steps, 2u);
  EXPECT_NEAR(time_in(trace, conv_forward), convolutions, 0.01);
  EXPECT_NEAR(time_in(trace, optimizer), optimizers, 0.01);
  EXPECT_NEAR(static_cast<double>(trace.total) / 1000, steps, 0.01);
  EXPECT_LT(time_in(trace, unassigned), 0.05 * steps);
  EXPECT_GT(time_in(trace, conv_backward), 0);
  EXPECT_EQ(trace.description["model"], "small");
  expect_sum(trace);
}

TEST(FrameworkTrace, HostileTracesAreRefusedInOneSentence) {
  const ScratchFolder folder;
  const auto refuse = [&](const std::string& text, const std::vector<std::string>& words) {
    const std::filesystem::path file = folder.write("trace.json", text);
    expect_error(ExitCode::bad_data, words, [&] { read_framework_trace(file); });
  };
  const std::string good = trace_text({step_mark(0, 0, 10), op("aten::conv2d", 1, 5)});
  refuse("", {"trace.json", "not JSON"});
  refuse("\x1f\x8b\x08\x01", {"not JSON", "ends too early"});
  refuse(std::string(100'000, '['), {"expected a profiler's JSON"});
  refuse("{}", {"no 'traceEvents'"});
  refuse(R"({"traceEvents": 7, "plumbline_peer": [1]})", {"no 'traceEvents'"});
  refuse("[]", {"no 'traceEvents'"});
  refuse(R"({"traceEvents": [[[1]], {"args": {"args": {}}}, {}]})", {"no ProfilerStep marks"});
  refuse(trace_text({op("aten::conv2d", 1, 5)}), {"no ProfilerStep marks"});
  refuse(trace_text({step_mark(0, 0, 10)}), {"without operators or kernels"});
  refuse(trace_text({step_mark(0, 0, 10), op("aten::conv2d", 20, 50)}), {"without operators or kernels"});
  refuse(trace_text({step_mark(0, 0, 0), op("aten::conv2d", 0, 0)}), {"without operators or kernels"});
  refuse(trace_text({op("aten::conv2d", 5, 1)}), {"event 1", "'ts' and 'dur'"});
  refuse(trace_text({op("aten::conv2d", 1e300, 2e300)}), {"event 1"});
  refuse(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": "0", "dur": 1}]})", {"event 1"});
  refuse(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": 5}]})", {"event 1"});
  for (std::size_t length = 1; length + 1 < good.size(); length += 3)
    refuse(good.substr(0, length), {"not JSON"});
  expect_error(ExitCode::bad_data, {"cannot read"}, [&] { read_framework_trace(folder / "none"); });
  expect_error(ExitCode::bad_data, {"cannot read"}, [&] { read_framework_trace(folder.path()); });
}

}  // namespace
}  // namespace plumb
