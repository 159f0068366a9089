#include "kernels/program/targets.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "base/text_table.h"
#include "kernels/program/roofline.h"
#include "tests/golden_text.h"

namespace plumb {
namespace {

TextRow row_of(const std::string& name, const DeviceLimits& limits) {
  TextRow row{name, limits.compute_capability > 0 ? "sm_" + std::to_string(limits.compute_capability) : ""};
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16}) {
    const auto rate = limits.flops_per_second.find(precision);
    row.push_back(rate == limits.flops_per_second.end() ? "-" : fmt::format("{:.4g}", rate->second / 1e12));
  }
  row.push_back(fmt::format("{:.0f}", limits.bytes_per_second / 1e9));
  row.push_back(fmt::format("{:.2f}", limits.memory_bytes / 0x1p30));
  row.push_back(limits.source);
  return row;
}

// Those that users name, then GPUs by their names in the driver: of a target, with the memory that is free;
// others of a similar name and unknown ones, with 100 multiprocessors at 1 GHz, by the rates of the last
// architecture that is not newer.
TEST(Targets, AreTheDocumentedOnesAndTheGpusOfTheirNamesInTheDriver) {
  std::vector<TextRow> rows{{"name", "", "fp32 Tflop/s", "tf32", "fp16", "bf16", "GB/s", "GiB", "source"}};
  for (const DeviceLimits& limits : targets()) rows.push_back(row_of(limits.name, limits));
  const auto add = [&](const std::string& name, int compute_capability) {
    rows.push_back(row_of(name, limits_of({.name = name,
                                           .compute_capability = compute_capability,
                                           .multiprocessors = 100,
                                           .clock_hz = 1e9,
                                           .memory_bytes = 5 * 0x1p30})));
  };
  for (const char* name : {"Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"}) add(name, 70);
  for (const char* name :
       {"NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM-64GB"})
    add(name, 80);
  for (const char* name : {"NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL", "NVIDIA H200", "NVIDIA GH200 120GB",
                           "NVIDIA GH200 480GB", "NVIDIA GH200 144G HBM3e", "NVIDIA H100 PCIe",
                           "NVIDIA H200 NVL", "NVIDIA H100", "NVIDIA H20", "NVIDIA H200 MIG 1g.18gb"})
    add(name, 90);
  for (const char* name : {"NVIDIA B200", "NVIDIA GB200"}) add(name, 100);
  for (const char* name : {"NVIDIA B300 SXM6 AC", "NVIDIA GB300"}) add(name, 103);
  for (const char* name :
       {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
        "NVIDIA RTX PRO 4500 Blackwell Server Edition"})
    add(name, 120);
  for (const char* name : {"NVIDIA L40S", "NVIDIA L40"}) add(name, 89);
  for (const char* name : {"Tesla T4", "Tesla T40 24GB"}) add(name, 75);
  for (const int compute_capability : {60, 70, 72, 80, 87, 90, 100, 101, 103, 110, 120, 121, 130})
    add("NVIDIA Graphics Device", compute_capability);
  expect_golden("plans/targets.txt", padded_table(rows, "llrrrrrrl"));
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
