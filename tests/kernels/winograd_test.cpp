// Winograd convolutions on the CPU: the rule that chooses them, their plan and their memory.
#include "kernels/program/winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <tuple>

#include "base/text.h"
#include "kernels/device.h"
#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "kernels/program/roofline.h"
#include "models/resnet50.h"
#include "tests/kernels/blocked_conv.h"
#include "tests/kernels/graph_builder.h"

namespace plumb {
namespace {

DeviceLimits cpu_with_winograd(int lanes = 16) {
  return {.name = "some cpu",
          .kind = DeviceKind::cpu,
          .flops_per_second = {{Precision::fp32, 1e11}},
          .bytes_per_second = 1e10,
          .threads = 2,
          .winograd_lanes = lanes};
}

// bf16_rate: of direct products, beside fp32's.
DeviceLimits cpu_with_bf16(double bf16_rate) {
  DeviceLimits limits = cpu_with_winograd();
  limits.flops_per_second[Precision::bf16] = bf16_rate * limits.flops_per_second[Precision::fp32];
  return limits;
}

Program resnet50_on(const DeviceLimits& limits, std::int64_t batch, std::int64_t image_size,
                    Winograd winograd = Winograd::where_faster, Precision precision = Precision::fp32) {
  return describe(make_resnet50({.batch = batch, .image_size = image_size}),
                  {.precision = precision, .winograd = winograd}, limits);
}

std::size_t chosen(const Program& program) {
  return winograd_instructions(program).size();
}

const Instruction& named(const Program& program, const std::string& name) {
  return *std::ranges::find(program.instructions, name, &Instruction::name);
}

bool copies_weight(const Program& program, const std::string& layer) {
  return std::ranges::any_of(program.buffers, [&](const Buffer& buffer) {
    return buffer.name == layer + ".weight.for_backward_data" ||
           buffer.name == layer + ".weight.half.for_backward_data";
  });
}

// ResNet-50 has 13 convolutions of 3x3 with stride 1: 3, 3, 5 and 2 in its stages; and 3 with stride 2.
TEST(WinogradRule, TakesAllStagesAtBatch16AndFewerWhereTilesAreFew) {
  EXPECT_EQ(chosen(resnet50_on(cpu_with_winograd(), 16, 224)), 48u);
  EXPECT_EQ(chosen(resnet50_on(cpu_with_winograd(), 1, 224)), 35u)
      << "not 512 channels of 7 x 7, with stride 2 only two passes of 128 to 28 x 28";
  EXPECT_EQ(chosen(resnet50_on(cpu_with_winograd(), 4, 32)), 9u) << "only 64 of 8 x 8";
  EXPECT_EQ(chosen(resnet50_on(cpu_with_winograd(), 1, 32)), 0u);
}

TEST(WinogradRule, WantsMoreTilesForTheWeightsTransformWithShorterVectors) {
  EXPECT_EQ(chosen(resnet50_on(cpu_with_winograd(8), 32, 224)), 45u)
      << "no gradients of weights with stride 2";
  EXPECT_EQ(chosen(resnet50_on(cpu_with_winograd(16), 1, 192)), 33u);
  EXPECT_EQ(chosen(resnet50_on(cpu_with_winograd(8), 1, 192)), 18u) << "nor 256 channels of 12 x 12";
}

TEST(WinogradRule, TakesFewerInBf16AndNoneBesideAmx) {
  EXPECT_EQ(chosen(resnet50_on(cpu_with_bf16(2), 16, 224, Winograd::where_faster, Precision::bf16)), 33u)
      << "not 512 channels of 7 x 7";
  EXPECT_EQ(chosen(resnet50_on(cpu_with_bf16(16), 16, 224, Winograd::where_faster, Precision::bf16)), 0u);
}

TEST(WinogradRule, NeedsTheCpuAndTheOption) {
  DeviceLimits without = cpu_with_winograd();
  without.winograd_lanes = 0;
  EXPECT_EQ(chosen(resnet50_on(without, 16, 224)), 0u);
  EXPECT_EQ(named(resnet50_on(without, 16, 224), "layer1.0.conv2.forward").engine, "") << "no choice";
  const Program direct = resnet50_on(cpu_with_winograd(), 16, 224, Winograd::never);
  EXPECT_EQ(chosen(direct), 0u);
  EXPECT_EQ(named(direct, "layer1.0.conv2.forward").engine, kDirect);
  EXPECT_EQ(named(direct, "layer1.0.conv1.forward").engine, "") << "1x1 has no choice";
}

TEST(WinogradRule, OnlyPlain3x3WithWholePanelsOfChannels) {
  struct Case {
    std::int64_t in, out;
    GraphBuilder::ConvOptions conv;
    bool can;
  };
  for (const Case& c : {Case{64, 64, {.kernel = 3, .padding = 1}, true},
                        {64, 32, {.kernel = 3}, true},
                        {64, 64, {.kernel = 3, .stride = 2, .padding = 1}, true},
                        {64, 64, {.kernel = 3, .stride = 2}, false},
                        {64, 64, {.kernel = 3, .stride = 3, .padding = 1}, false},
                        {64, 64, {.kernel = 3, .padding = 2}, false},
                        {64, 64, {.kernel = 3, .padding = 1, .groups = 2}, false},
                        {64, 64, {.kernel = 5, .padding = 1}, false},
                        {64, 64, {.kernel = 1}, false},
                        {3, 64, {.kernel = 3, .padding = 1}, false},
                        {64, 48, {.kernel = 3, .padding = 1}, false},
                        {64, 20, {.kernel = 3, .padding = 1}, false}}) {
    GraphBuilder b({1, 56, 56, c.in});
    const Graph graph = b.classify(b.conv(GraphBuilder::kImages, c.out, c.conv));
    EXPECT_EQ(can_be_winograd(graph, std::get<Conv>(graph.ops[0])), c.can)
        << c.in << " to " << c.out << ", kernel " << c.conv.kernel << ", stride " << c.conv.stride;
  }
}

// 14 results along either axis: with stride 1 4 + 4 + 4 + 2, with 6 + 6 + 6 + 4 points, else 4 + 4 + 3 + 3,
// with 9 + 9 + 7 + 7.
TEST(WinogradPlan, NumbersTilesSoThatEachPointMultipliesOneRun) {
  struct Case {
    std::int64_t stride, points, first_short;
    std::array<std::int64_t, 2> of_whole_tiles_only;
  };
  for (const Case& c : {Case{1, 22, 12, {3, 4}}, {2, 32, 8, {3, 8}}}) {
    const WinogradPlan plan = plan_winograd(
        padded_shape(9, 32, 32, 14 * c.stride, 14 * c.stride, 3, c.stride, 1), ConvPass::forward, 16, 2);
    EXPECT_EQ(plan.products(), 9 * c.points * c.points);
    const auto is_of_whole_tiles_only = [&](std::int64_t point) {
      return std::ranges::count(c.of_whole_tiles_only, point) > 0;
    };
    std::int64_t products = 0;
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> places;
    for (std::int64_t first = 0; first < plan.tiles(); first += plan.step) {
      const std::int64_t count = std::min(plan.step, plan.tiles() - first);
      for (std::int64_t point = 0; point < plan.points(); ++point) {
        const WinogradRun run = winograd_run(plan, count, point);
        products += run.end - run.begin;
        for (std::int64_t index = 0; index < count; ++index) {
          const WinogradTile tile = winograd_tile(plan, first + index);
          const std::int64_t row = point / plan.tiling.points, column = point % plan.tiling.points;
          const bool has_point = !(tile.is_short_down && is_of_whole_tiles_only(row)) &&
                                 !(tile.is_short_across && is_of_whole_tiles_only(column));
          EXPECT_EQ(index >= run.begin && index < run.end, has_point) << index << ", point " << point;
          EXPECT_EQ(tile.is_short_down, tile.top >= c.first_short);
          EXPECT_EQ(tile.is_short_across, tile.left >= c.first_short);
          places.insert({tile.image, tile.top, tile.left});
        }
      }
    }
    EXPECT_EQ(products, plan.products());
    EXPECT_EQ(places.size(), 9u * 16);
  }
}

TEST(WinogradProgram, CountsItsOwnProductsAndKeepsNoSecondCopyOfWeights) {
  const Program program = resnet50_on(cpu_with_winograd(), 16, 224);
  const double products = named(program, "layer1.0.conv2.forward").work.macs;
  EXPECT_EQ(products, 36.0 * 16 * 14 * 14 * 64 * 64);
  EXPECT_EQ(
      named(resnet50_on(cpu_with_winograd(), 16, 224, Winograd::never), "layer1.0.conv2.forward").work.macs,
      4 * products);
  EXPECT_EQ(named(program, "layer2.0.conv2.forward").work.macs, 81.0 * 16 * 7 * 7 * 128 * 128);
  EXPECT_FALSE(copies_weight(program, "layer1.0.conv2"));
  EXPECT_TRUE(copies_weight(program, "layer1.0.conv1"));
}

TEST(WinogradProgram, InBf16ReadsTheHalfWeightAndCountsProductsInFp32) {
  const DeviceLimits limits = cpu_with_bf16(2);
  const Program program = resnet50_on(limits, 16, 224, Winograd::everywhere, Precision::bf16);
  for (const char* pass : {".forward", ".backward_data"}) {
    const Instruction& instruction = named(program, std::string("layer1.0.conv2") + pass);
    EXPECT_EQ(precision_of(program, instruction, Precision::bf16), Precision::fp32) << pass;
    const auto reads_half = [&](const BufferUse& use) {
      return program.buffers[use.buffer].name == "layer1.0.conv2.weight.half";
    };
    EXPECT_TRUE(std::ranges::any_of(instruction.uses(), reads_half)) << pass;
  }
  EXPECT_EQ(precision_of(program, named(program, "layer1.0.conv1.forward"), Precision::bf16),
            Precision::bf16);
  EXPECT_FALSE(copies_weight(program, "layer1.0.conv2"));
}

// The CPU that runs the tests.
class CpuWinograd : public testing::Test {
 protected:
  void SetUp() override {
    if (device_->limits().winograd_lanes == 0) GTEST_SKIP() << "this CPU has no AVX2";
  }
  const std::unique_ptr<Device> device_ = cpu::make_device({.choice = DeviceChoice::cpu, .threads = 2});
};

TEST(CpuLimits, HaveTheVectorsThatOneDnnMayUse) {
  const char* const set = std::getenv("DNNL_MAX_CPU_ISA");
  const std::string most = set ? set : "";
  int lanes = __builtin_cpu_supports("avx2") && most != "SSE41" ? 8 : 0;
  if (__builtin_cpu_supports("avx512dq") && most.empty()) lanes = 16;  // part of oneDNN's avx512_core
  EXPECT_EQ(cpu::make_device({.choice = DeviceChoice::cpu})->limits().winograd_lanes, lanes);
}

TEST_F(CpuWinograd, DescribedWorkspacesAreTheRealOnes) {
  for (const std::int64_t batch : {2, 16}) {
    const Graph graph = make_resnet50({.batch = batch});
    const Program described = describe(graph, {}, device_->limits());
    Program prepared = described;
    device_->prepare(graph, {}, prepared);
    for (const std::string& name : winograd_instructions(described))
      EXPECT_NEAR(named(described, name).workspace_bytes, named(prepared, name).workspace_bytes, 63)
          << name << ", batch " << batch;
  }
}

}  // namespace
}  // namespace plumb
