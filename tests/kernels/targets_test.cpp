#include "kernels/targets.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "kernels/describe.h"
#include "kernels/roofline.h"

namespace plumb {
namespace {

TEST(Targets, AreTheDocumentedOnesEachWithASource) {
  std::set<std::string> names;
  for (const DeviceLimits& limits : targets()) {
    names.insert(limits.name);
    EXPECT_FALSE(limits.source.empty()) << limits.name;
    EXPECT_TRUE(limits.flops_per_second.contains(Precision::fp32)) << limits.name;
    EXPECT_GT(limits.bytes_per_second, 1e10) << limits.name;
    EXPECT_GT(limits.memory_bytes, 1e9) << limits.name;
    EXPECT_EQ(limits.compute_capability > 0, limits.kind == DeviceKind::cuda) << limits.name;
  }
  EXPECT_EQ(names, (std::set<std::string>{"v100-16gb", "v100-32gb", "a100-40gb", "a100-80gb", "h100", "h200",
                                          "t4", "cpu"}));
}

TEST(Targets, NamesAreFoundAsWritten) {
  EXPECT_EQ(find_target("h200")->compute_capability, 90);
  EXPECT_FALSE(find_target("H200").has_value());
  EXPECT_FALSE(find_target("").has_value());
}

TEST(Targets, Bf16AndTf32NeedSm80) {
  for (const DeviceLimits& limits : targets()) {
    if (limits.kind != DeviceKind::cuda) continue;
    EXPECT_EQ(limits.flops_per_second.contains(Precision::bf16), limits.compute_capability >= 80)
        << limits.name;
    EXPECT_EQ(limits.flops_per_second.contains(Precision::tf32), limits.compute_capability >= 80)
        << limits.name;
  }
}

TEST(Targets, LeaveMemoryToTheContext) {
  EXPECT_LT(find_target("v100-16gb")->memory_bytes, 15.6 * 1024 * 1024 * 1024);
  EXPECT_LT(find_target("a100-40gb")->memory_bytes, 39.5 * 1024 * 1024 * 1024);
}

TEST(Targets, AreOfModulesAndNotOfCardsOfTheSameName) {
  const auto peak = [](const char* name) {
    return limits_of({.name = name, .compute_capability = 90, .multiprocessors = 114, .clock_hz = 1.755e9})
        .flops_per_second.at(Precision::fp16);
  };
  EXPECT_DOUBLE_EQ(peak("NVIDIA H100 80GB HBM3"), find_target("h100")->flops_per_second.at(Precision::fp16));
  for (const char* card : {"NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200 NVL"})
    EXPECT_DOUBLE_EQ(peak(card), 0.8 * 4096 * 114 * 1.755e9) << card;
}

TEST(Describe, RefusesAPrecisionThatTheDeviceLacksAndNamesThoseItHas) {
  try {
    describe(Graph{}, {.precision = Precision::bf16}, *find_target("v100-16gb"));
    FAIL() << "bf16 on a V100";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    const std::string sentence = error.what();
    EXPECT_NE(sentence.find("--bf16"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("v100-16gb"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("--fp32, --fp16"), std::string::npos) << sentence;
  }
}

TEST(Roofline, AStepTakesTheLongerOfArithmeticAndMemory) {
  const DeviceLimits limits{
      .name = "x", .flops_per_second = {{Precision::fp32, 100}}, .bytes_per_second = 10};
  EXPECT_DOUBLE_EQ(roofline_seconds({.macs = 100, .bytes = 10}, limits, Precision::fp32), 2);
  EXPECT_DOUBLE_EQ(roofline_seconds({.macs = 100, .bytes = 50}, limits, Precision::fp32), 5);
}

TEST(Roofline, SumsOverTheComputeLane) {
  const DeviceLimits limits{
      .name = "x", .flops_per_second = {{Precision::fp32, 100}}, .bytes_per_second = 10};
  Program program;
  program.instructions = {{.operation = Recorded{}, .work = {.macs = 100, .bytes = 10}},
                          {.operation = Recorded{}, .work = {.macs = 100, .bytes = 50}},
                          {.operation = Recorded{}, .lane = Lane::communication, .work = {.bytes = 1000}}};
  const Roofline total = roofline(program, limits, Precision::fp32);
  EXPECT_DOUBLE_EQ(total.seconds, 7);
  EXPECT_DOUBLE_EQ(total.bytes_seconds, 5);
  EXPECT_DOUBLE_EQ(total.flops, 400);
  EXPECT_DOUBLE_EQ(total.bytes, 60);
}

TEST(Roofline, StepsOfAnFp32HeadHaveFp32sPeak) {
  Program program;
  program.buffers = {{.name = "half", .dtype = DType::f16}, {.name = "full", .dtype = DType::f32}};
  const Instruction half{.name = "half", .operation = Cast{.from = 1, .into = 0}, .work = {.macs = 100}};
  const Instruction full{.name = "full", .operation = Cast{.from = 1, .into = 1}, .work = {.macs = 100}};
  program.instructions = {half, full};
  const DeviceLimits limits{.name = "x",
                            .flops_per_second = {{Precision::fp32, 10}, {Precision::fp16, 100}},
                            .bytes_per_second = 1};
  EXPECT_EQ(precision_of(program, half, Precision::fp16), Precision::fp16);
  EXPECT_EQ(precision_of(program, full, Precision::fp16), Precision::fp32);
  EXPECT_EQ(precision_of(program, full, Precision::tf32), Precision::tf32);
  EXPECT_DOUBLE_EQ(roofline(program, limits, Precision::fp16).seconds, 2 + 20);
  program.allow_tf32 = true;
  EXPECT_EQ(precision_of(program, half, Precision::fp16), Precision::fp16);
  EXPECT_EQ(precision_of(program, full, Precision::fp16), Precision::tf32);
}

}  // namespace
}  // namespace plumb
