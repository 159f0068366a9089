#include "results/explain/framework_trace.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>

#include "tests/bench/expect_error.h"
#include "tests/results/trace_text.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using enum StepCategory;

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

TEST(FrameworkTrace, TheOutermostKnownOperatorCountsWithAllThatItCalls) {
  const FrameworkTrace trace =
      sorted({step_mark(1, 0, 100), op("aten::conv2d", 10, 50), op("aten::copy_", 15, 30),
              op("aten::mkldnn_convolution", 30, 49), op("aten::add_", 60, 65)});
  EXPECT_EQ(time_in(trace, conv_forward), 40);
  EXPECT_EQ(time_in(trace, elementwise), 5);
  EXPECT_EQ(time_in(trace, gaps), 55);
  EXPECT_EQ(trace.steps, 1u);
  EXPECT_FALSE(trace.on_gpu);
  expect_sum(trace);
}

TEST(FrameworkTrace, OwnTimeOfCallersIsAGapAndOfUnknownOperatorsUnassigned) {
  const FrameworkTrace trace = sorted(
      {step_mark(1, 0, 100), op("autograd::engine::evaluate_function: FooBackward0", 0, 30),
       op("FooBackward0", 2, 29), op("aten::mul", 5, 15), op("mystery", 40, 70), op("aten::mm", 50, 55)});
  EXPECT_EQ(time_in(trace, elementwise), 10);
  EXPECT_EQ(time_in(trace, dense), 5);
  EXPECT_EQ(time_in(trace, unassigned), 25);
  EXPECT_EQ(time_in(trace, gaps), 60);
  ASSERT_EQ(trace.unassigned.size(), 1u);
  EXPECT_EQ(trace.unassigned[0].first, "mystery");
  EXPECT_EQ(trace.unassigned[0].second, 25'000);
}

TEST(FrameworkTrace, CommunicationBesideComputationIsHidden) {
  const FrameworkTrace trace = sorted({step_mark(1, 0, 100), op("aten::conv2d", 0, 40),
                                       op("gloo:all_reduce", 20, 60, 2), op("aten::mm", 50, 55)});
  EXPECT_EQ(time_in(trace, conv_forward), 40);
  EXPECT_EQ(time_in(trace, communication), 15);
  EXPECT_EQ(time_in(trace, dense), 5);
  EXPECT_EQ(trace.hidden_communication, 25'000);
  expect_sum(trace);
}

TEST(FrameworkTrace, WhatIsOutsideTheStepsDoesNotCount) {
  const FrameworkTrace trace = sorted({op("aten::conv2d", 0, 15), step_mark(2, 20, 30), step_mark(1, 10, 20),
                                       op("aten::mm", 25, 90), op("aten::add", 95, 99)});
  EXPECT_EQ(trace.total, 20'000);
  EXPECT_EQ(trace.steps, 2u);
  EXPECT_EQ(time_in(trace, conv_forward), 5);
  EXPECT_EQ(time_in(trace, dense), 5);
  EXPECT_EQ(time_in(trace, elementwise), 0);
}

TEST(FrameworkTrace, KernelsGoByTheirNameThenByTheirOperatorThenByTheirForm) {
  const FrameworkTrace trace =
      sorted({step_mark(1, 0, 10), op("aten::convolution_backward", 1, 4, 1, 5),
              op("aten::cudnn_batch_norm", 5, 6, 1, 6), op("wrapper", 7, 8, 1, 8),
              kernel("sm80_xmma_dgrad_implicit_gemm", 100, 110, 5),
              kernel("volta_sgemm_64x64_nt", 110, 113, 5), kernel("reshape_kernel", 113, 114, 6),
              kernel("ampere_sgemm_32x32_tn", 120, 125, 8), kernel("mystery_kernel", 130, 137, 8)});
  EXPECT_TRUE(trace.on_gpu);
  EXPECT_EQ(time_in(trace, conv_backward_data), 10);
  EXPECT_EQ(time_in(trace, conv_backward), 3);
  EXPECT_EQ(time_in(trace, norm), 1);
  EXPECT_EQ(time_in(trace, dense), 5);
  EXPECT_EQ(time_in(trace, unassigned), 7);
  EXPECT_EQ(time_in(trace, gaps), 11);
  EXPECT_EQ(trace.total, 37'000);
}

TEST(FrameworkTrace, HalvesOfABackwardConvolutionAreToldApartInsideOfIt) {
  const FrameworkTrace trace = sorted(
      {step_mark(1, 0, 10), op("CudnnConvolutionBackward", 0, 9, 1, 1),
       op("aten::cudnn_convolution_backward_input", 1, 4, 1, 2), kernel("volta_sgemm_64x64_nt", 20, 24, 2),
       op("aten::cudnn_convolution_backward_weight", 5, 8, 1, 3), op("aten::empty", 6, 7, 1, 4),
       kernel("volta_sgemm_64x64_nt", 24, 31, 4)});
  EXPECT_EQ(time_in(trace, conv_backward_data), 4);
  EXPECT_EQ(time_in(trace, conv_backward_weights), 7);
}

// The host runs far ahead: its steps take 10 µs, the device's 100.
TEST(FrameworkTrace, AStepOfAGpuGoesFromItsFirstKernelToTheNextOnes) {
  std::vector<TraceJson> events;
  for (int i = 0; i < 4; ++i) {
    events.push_back(step_mark(i, 10 * i, 10 * i + 10));
    events.push_back(op("aten::conv2d", 10 * i + 1, 10 * i + 2, 1, 100 + i));
    events.push_back(kernel("implicit_convolve_sgemm", 50 + 100 * i, 110 + 100 * i, 100 + i));
  }
  const FrameworkTrace trace = sorted(events);
  EXPECT_EQ(trace.steps, 3u);
  EXPECT_EQ(trace.total, 300'000);
  EXPECT_EQ(time_in(trace, conv_forward), 180);
  EXPECT_EQ(time_in(trace, gaps), 120);
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

// Made by tests/reference/make_trace.py.
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

TEST(FrameworkTrace, ABareListOfEventsAndOldNamesOfCategoriesAreRead) {
  const ScratchFolder folder;
  const TraceJson list = TraceJson::array({trace_event("Operator", "ProfilerStep#0", 0, 10),
                                           trace_event("Operator", "aten::conv2d", 0, 4, 1, 1),
                                           trace_event("Kernel", "volta_sgemm_128x64_nn", 20, 25, 9, 1)});
  const FrameworkTrace trace = read_framework_trace(folder.write("trace.json", list.dump()));
  EXPECT_EQ(time_in(trace, conv_forward), 5);
}

TEST(FrameworkTrace, HostileTracesAreRefusedInOneSentence) {
  const ScratchFolder folder;
  const auto refuse = [&](const std::string& text, const std::vector<std::string>& words) {
    const std::filesystem::path file = folder.write("trace.json", text);
    expect_error(ExitCode::bad_data, words, [&] { read_framework_trace(file); });
  };
  const std::string good = trace_text({step_mark(0, 0, 10), op("aten::conv2d", 1, 5)});
  refuse("", {"trace.json", "no JSON"});
  refuse("\x1f\x8b\x08\x01", {"no JSON from byte 1", "unpack"});
  refuse(std::string(100'000, '['), {"no JSON"});
  refuse("{}", {"no 'traceEvents'"});
  refuse(R"({"traceEvents": 7, "plumbline_peer": [1]})", {"no 'traceEvents'"});
  refuse("[]", {"no ProfilerStep marks"});
  refuse(R"([[[1]], {"args": {"args": {}}}, {}])", {"no ProfilerStep marks"});
  refuse(trace_text({op("aten::conv2d", 1, 5)}), {"no ProfilerStep marks"});
  refuse(trace_text({step_mark(0, 0, 10)}), {"no operators or kernels"});
  refuse(trace_text({step_mark(0, 0, 10), op("aten::conv2d", 20, 50)}), {"no operators or kernels"});
  refuse(trace_text({step_mark(0, 0, 0), op("aten::conv2d", 0, 0)}), {"no operators or kernels"});
  refuse(trace_text({op("aten::conv2d", 5, 1)}), {"event 1", "'ts' and 'dur'"});
  refuse(trace_text({op("aten::conv2d", 1e300, 2e300)}), {"event 1"});
  refuse(R"([{"ph": "X", "cat": "kernel", "name": "k", "ts": "0", "dur": 1}])", {"event 1"});
  refuse(R"([{"ph": "X", "cat": "kernel", "name": 5}])", {"event 1"});
  for (std::size_t length = 1; length + 1 < good.size(); length += 3)
    refuse(good.substr(0, length), {"no JSON from byte"});
  expect_error(ExitCode::bad_data, {"can't be read"}, [&] { read_framework_trace(folder / "none"); });
  expect_error(ExitCode::bad_data, {"can't be read"}, [&] { read_framework_trace(folder.path()); });
}

}  // namespace
}  // namespace plumb
