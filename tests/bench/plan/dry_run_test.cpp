#include "bench/plan/dry_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "base/error.h"
#include "comm/gradient_reduction.h"
#include "kernels/program/describe.h"
#include "kernels/program/targets.h"
#include "models/resnet50.h"
#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

StepPlan planned(const DeviceLimits& limits, Precision precision, std::int64_t batch) {
  ResNet50Options options;
  options.batch = batch;
  StepPlan plan{.graph = make_resnet50(options)};
  plan.program = add_gradient_reduction(describe(plan.graph, {precision}, limits), {});
  plan.memory = plan_memory(plan.program);
  plan.needed_bytes = static_cast<double>(plan.memory.arena_bytes);
  return plan;
}

// A device of 1 TFLOP/s and 100 GB/s, and instructions with known roofline times.
DeviceLimits round_device() {
  return {.name = "round",
          .flops_per_second = {{Precision::fp32, 1e12}},
          .bytes_per_second = 1e11,
          .memory_bytes = 1000};
}

Program two_steps_and_an_allreduce() {
  Program program;
  program.buffers = {{.name = "a", .role = Role::activation, .dims = {150}, .bytes = 600},
                     {.name = "g", .role = Role::gradient, .dims = {100}, .bytes = 400}};
  Instruction compute_bound{
      .name = "compute bound", .operation = Recorded{{{0, Access::write}}}, .work = {5e9, 1e8}};
  Instruction bandwidth_bound{.name = "bandwidth bound",
                              .operation = Recorded{{{0, Access::read}, {1, Access::write}}},
                              .phase = Phase::backward,
                              .work = {0, 3e9}};
  Instruction reduce{.name = "reduce",
                     .operation = Collective{.buffer = 1, .elements = 100, .parts = {1}},
                     .phase = Phase::reduce,
                     .lane = Lane::communication,
                     .work = {.bytes = 1e12}};
  program.instructions = {compute_bound, bandwidth_bound, reduce};
  return program;
}

DryRun round_run(double memory_bytes, int world_size = 4) {
  StepPlan plan;
  plan.graph.model = "tiny";
  plan.graph.values = {{"images", {2, 1, 1, 3}}};
  plan.program = two_steps_and_an_allreduce();
  plan.memory = plan_memory(plan.program, 1);
  plan.needed_bytes = static_cast<double>(plan.memory.arena_bytes);
  DeviceLimits limits = round_device();
  limits.memory_bytes = memory_bytes;
  return dry_run(plan, limits, Precision::fp32, world_size, 9);
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

TEST(DryRun, TimesEachStepByTheLargerOfItsLimits) {
  const DryRun run = round_run(1e6);
  ASSERT_EQ(run.instructions.size(), 3U);
  EXPECT_DOUBLE_EQ(run.instructions[0].roofline_seconds, 0.010);
  EXPECT_DOUBLE_EQ(run.instructions[1].roofline_seconds, 0.030);
  EXPECT_EQ(run.instructions[2].roofline_seconds, 0) << "collectives run beside the compute lane";
  EXPECT_DOUBLE_EQ(run.roofline_seconds, 0.040);
  EXPECT_DOUBLE_EQ(run.bandwidth_share, 0.75);
}

TEST(DryRun, CountsWhatARingSendsPerRank) {
  EXPECT_DOUBLE_EQ(round_run(1e6, 4).traffic_bytes, 400 * 2 * 3.0 / 4);
  EXPECT_EQ(round_run(1e6, 1).traffic_bytes, 0);
}

TEST(DryRun, FitsWhenThePlanIsAtMostTheMemory) {
  const auto planned_bytes = static_cast<double>(round_run(1e6).memory.planned);
  EXPECT_GE(planned_bytes, 1000);
  EXPECT_TRUE(round_run(planned_bytes).fits);
  EXPECT_FALSE(round_run(planned_bytes - 1).fits);
}

// Buckets are summed as 2 (n - 1) / n of their bytes, at 2 us a hop.
TEST(DryRun, PredictsTheExchangeOverLinksThatAreAskedAbout) {
  const DeviceLimits limits = find_target("h200").value();
  const StepPlan plan = planned(limits, Precision::fp16, 256);
  DryRun run = dry_run(plan, limits, Precision::fp16, 8, 1);
  run.exchange = predict_exchange(plan, roofline_seconds(run), {4, 2},
                                  {.latency_seconds = 2e-6, .bytes_per_second = 1.25e10});
  double expected = 0;
  for (const Instruction& instruction : plan.program.instructions)
    if (const auto* one = instruction.as<Collective>())
      expected += static_cast<double>(one->elements * bytes_of(one->dtype)) * 2 * 7 / 8 / 1.25e10 + 6 * 2e-6;
  EXPECT_NEAR(run.exchange->seconds, expected, 1e-9 * expected);
  EXPECT_GT(*run.exchange->exposed_seconds, 0);
  EXPECT_LT(*run.exchange->exposed_seconds, run.exchange->seconds) << "backward hides most of it";
  EXPECT_NEAR(to_json(run)["exchange"]["seconds"].get<double>(), expected, 1e-9 * expected);
  const std::string text = to_text(run);
  EXPECT_LE(widest_line(text), 100U) << text;
  EXPECT_NE(text.find("over 4n2g, 100 Gbit/s and 2 us between nodes"), std::string::npos) << text;
  EXPECT_NE(text.find("exposed"), std::string::npos) << text;
}

TEST(TargetList, WrapsALongSource) {
  DeviceLimits target = round_device();
  for (int i = 0; i < 60; ++i) target.source += "word ";
  EXPECT_LE(widest_line(targets_text({target})), 100U);
}

}  // namespace
}  // namespace plumb
