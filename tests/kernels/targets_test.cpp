#include "kernels/program/targets.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "kernels/program/describe.h"
#include "kernels/program/roofline.h"

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
  EXPECT_EQ(names, (std::set<std::string>{"v100-16gb", "v100-32gb", "a100-40gb", "a100-80gb", "h100",
                                          "h100-nvl", "h200", "gh200-96gb", "gh200-144gb", "b200", "gb200",
                                          "b300", "gb300", "rtx-pro-6000", "l40s", "t4", "cpu"}));
}

TEST(Targets, NamesAreFoundAsWritten) {
  EXPECT_EQ(find_target("h200")->compute_capability, 90);
  EXPECT_FALSE(find_target("H200").has_value());
  EXPECT_FALSE(find_target("").has_value());
}

TEST(Targets, FirstWordsOfANameAreTheFirstOfTheirKind) {
  for (const auto& [words, name] :
       {std::pair("v100", "v100-16gb"), std::pair("a100", "a100-40gb"), std::pair("gh200", "gh200-96gb"),
        std::pair("rtx-pro", "rtx-pro-6000"), std::pair("h100", "h100")})
    EXPECT_EQ(find_target(words).value_or(DeviceLimits{}).name, name);
  for (const char* part_of_a_word : {"v1", "h", "l40", "b", "v100-", "v100-16"})
    EXPECT_FALSE(find_target(part_of_a_word).has_value()) << part_of_a_word;
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

// The peak in fp16 of a GPU with 100 multiprocessors at 1 GHz.
double fp16_peak(const std::string& name, int compute_capability) {
  return limits_of({.name = name,
                    .compute_capability = compute_capability,
                    .multiprocessors = 100,
                    .clock_hz = 1e9})
      .flops_per_second.at(Precision::fp16);
}

TEST(Targets, AreTheGpusOfTheirNamesInTheDriver) {
  for (const auto& [name, target] :
       {std::pair("Tesla V100-SXM2-16GB", "v100-16gb"), std::pair("Tesla V100-SXM2-32GB", "v100-32gb"),
        std::pair("NVIDIA A100-SXM4-40GB", "a100-40gb"), std::pair("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        std::pair("NVIDIA H100 80GB HBM3", "h100"), std::pair("NVIDIA H100 NVL", "h100-nvl"),
        std::pair("NVIDIA H200", "h200"), std::pair("NVIDIA GH200 120GB", "gh200-96gb"),
        std::pair("NVIDIA GH200 480GB", "gh200-96gb"), std::pair("NVIDIA GH200 144G HBM3e", "gh200-144gb"),
        std::pair("NVIDIA B200", "b200"), std::pair("NVIDIA GB200", "gb200"),
        std::pair("NVIDIA B300 SXM6 AC", "b300"), std::pair("NVIDIA GB300", "gb300"),
        std::pair("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"),
        std::pair("NVIDIA L40S", "l40s"), std::pair("Tesla T4", "t4")}) {
    const DeviceLimits expected = *find_target(target);
    const DeviceLimits limits =
        limits_of({.name = name, .compute_capability = expected.compute_capability, .memory_bytes = 5e9});
    EXPECT_EQ(limits.name, name);
    EXPECT_EQ(limits.flops_per_second, expected.flops_per_second) << name;
    EXPECT_EQ(limits.bytes_per_second, expected.bytes_per_second) << name;
    EXPECT_EQ(limits.source, expected.source) << name;
    EXPECT_EQ(limits.memory_bytes, 5e9) << "what is free, not the target's";
  }
}

TEST(Targets, AreNotOtherGpusOfASimilarName) {
  for (const char* name :
       {"NVIDIA H100 PCIe", "NVIDIA H200 NVL", "NVIDIA H100", "NVIDIA H20", "NVIDIA H200 MIG 1g.18gb"})
    EXPECT_DOUBLE_EQ(fp16_peak(name, 90), 0.8 * 4096 * 1e11) << name;
  for (const char* name : {"NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM-64GB"})
    EXPECT_DOUBLE_EQ(fp16_peak(name, 80), 0.8 * 2048 * 1e11) << name;
  for (const char* name :
       {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "NVIDIA RTX PRO 4500 Blackwell Server Edition"})
    EXPECT_DOUBLE_EQ(fp16_peak(name, 120), 0.8 * 1024 * 1e11) << name;
  EXPECT_DOUBLE_EQ(fp16_peak("NVIDIA L40", 89), 0.8 * 1024 * 1e11);
  EXPECT_DOUBLE_EQ(fp16_peak("Tesla T40 24GB", 75), 0.8 * 1024 * 1e11);
}

TEST(Targets, AnUnknownGpuHasTheRatesOfTheLastArchitectureThatIsNotNewer) {
  for (const auto& [compute_capability, fp16_per_clock] :
       {std::pair(60, 1024), std::pair(70, 1024), std::pair(72, 1024), std::pair(80, 2048),
        std::pair(87, 1024), std::pair(90, 4096), std::pair(100, 8192), std::pair(101, 8192),
        std::pair(103, 8192), std::pair(110, 8192), std::pair(120, 1024), std::pair(121, 1024),
        std::pair(130, 1024)})
    EXPECT_DOUBLE_EQ(fp16_peak("NVIDIA Graphics Device", compute_capability), 0.8 * fp16_per_clock * 1e11)
        << compute_capability;
}

// Both come from NVIDIA, on different pages. Datasheets take a lower clock for tensor cores than for fp32.
TEST(Targets, HaveTheRatesPerClockOfTheirArchitecture) {
  for (const DeviceLimits& target : targets()) {
    if (target.kind != DeviceKind::cuda) continue;
    const auto rates = limits_of({.name = "NVIDIA Graphics Device",
                                  .compute_capability = target.compute_capability,
                                  .multiprocessors = 1,
                                  .clock_hz = 1})
                           .flops_per_second;
    for (const auto& [precision, flops] : target.flops_per_second)
      EXPECT_NEAR(flops / target.flops_per_second.at(Precision::fp32),
                  rates.at(precision) / rates.at(Precision::fp32),
                  0.14 * rates.at(precision) / rates.at(Precision::fp32))
          << target.name << ' ' << name_of(precision);
  }
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
