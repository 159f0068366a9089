// Buffers, bytes, dtypes and instructions of a training step on a GPU; fusion has tests of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "kernels/cuda/plan/state.h"
#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "kernels/program/roofline.h"
#include "models/arcface.h"
#include "models/resnet50.h"
#include "tests/bench/expect_error.h"
#include "tests/kernels/described_instructions.h"

namespace plumb {
namespace {

Program resnet50(const std::string& target, const DescribeOptions& options, std::int64_t batch,
                 std::int64_t image_size = 224) {
  return describe(make_resnet50({.batch = batch, .image_size = image_size}), options, *find_target(target));
}
Program small(const DescribeOptions& options) {
  return resnet50("h200", options, 2, 64);
}

std::map<std::string, Buffer> buffers_of(const Program& program) {
  std::map<std::string, Buffer> buffers;
  for (const Buffer& buffer : program.buffers) buffers[buffer.name] = buffer;
  return buffers;
}

using Operands = std::vector<std::string>;

bool fits(const std::string& target, Precision precision, std::int64_t batch, bool fuse) {
  const DescribeOptions options{
      .precision = precision, .load_batch_every_step = true, .fuse = fuse, .scale_loss = true};
  const Program program = resnet50(target, options, batch);
  return static_cast<double>(plan_memory(program).arena_bytes) <= find_target(target)->memory_bytes;
}

TEST(CudaDescribe, BatchesThatGpusHold) {
  for (const bool fuse : {false, true}) {
    EXPECT_TRUE(fits("v100-16gb", Precision::fp32, 128, fuse));
    EXPECT_TRUE(fits("v100-16gb", Precision::fp16, 256, fuse));
    EXPECT_FALSE(fits("v100-16gb", Precision::fp32, 1024, fuse));
    EXPECT_TRUE(fits("a100-40gb", Precision::fp16, 512, fuse));
    EXPECT_FALSE(fits("a100-40gb", Precision::fp16, 2048, fuse));
    EXPECT_TRUE(fits("h200", Precision::fp16, 2048, fuse));
    EXPECT_TRUE(fits("h200", Precision::fp32, 1024, fuse));
  }
}

// Images/s: per-operation limits of fp16 training with plain convolutions and our own fused norms, counted by
// hand, without the 14 MB per image that shortcuts and the max pool save (cuda_fusion_test.cpp).
TEST(CudaDescribe, RooflineOfUnfusedHalfPrecisionTraining) {
  const std::map<std::string, double> expected{{"h200", 11463}, {"a100-80gb", 4328}, {"v100-16gb", 1915}};
  const Program program = resnet50("h200", {.precision = Precision::fp16, .fuse = false}, 256);
  for (const auto& [target, images_per_second] : expected) {
    const double seconds = roofline(program, *find_target(target), Precision::fp16).seconds;
    EXPECT_NEAR(256 / seconds, images_per_second, 0.05 * images_per_second) << target;
  }
}

TEST(CudaDescribe, KeepsMastersStatisticsAndLogitsInFp32AndTheRestInHalf) {
  const std::map<std::string, Buffer> buffers = buffers_of(small({.precision = Precision::bf16}));
  EXPECT_EQ(buffers.at("layer1.0.conv1.weight").dtype, DType::f32);
  EXPECT_EQ(buffers.at("layer1.0.conv1.weight.half").dtype, DType::bf16);
  EXPECT_EQ(buffers.at("layer1.0.conv1.weight.gradient").dtype, DType::bf16);
  EXPECT_EQ(buffers.at("layer1.0.conv1.weight.momentum").dtype, DType::f32);
  EXPECT_EQ(buffers.at("layer1.0.bn1.weight.gradient").dtype, DType::f32);
  EXPECT_EQ(buffers.at("layer1.0.bn1.running_mean").dtype, DType::f32);
  EXPECT_EQ(buffers.at("layer1.0.bn1.inv_std").dtype, DType::f32);
  EXPECT_EQ(buffers.at("layer1.0.conv1").dtype, DType::bf16);
  EXPECT_FALSE(buffers.contains("layer1.0.bn1.weight.half"));
  EXPECT_EQ(buffers.at("fc").dtype, DType::f32);
  EXPECT_EQ(buffers.at("fc").bytes, 2u * 1000 * 4);
  EXPECT_EQ(buffers.at("fc.gradient_by.loss").dtype, DType::bf16);
  EXPECT_EQ(buffers.at("fc.gradient_by.loss").bytes, 2u * 1000 * 2);
}

TEST(CudaDescribe, PadsTheImagesChannelsToWhatTensorCoresRead) {
  const std::map<std::string, Buffer> half = buffers_of(small({.precision = Precision::bf16}));
  EXPECT_EQ(half.at("images").bytes, 2u * 64 * 64 * 4 * 2);
  EXPECT_EQ(half.at("conv1.weight").bytes, 64u * 49 * 4 * 4);
  EXPECT_EQ(half.at("conv1.weight.half").bytes, 64u * 49 * 4 * 2);
  const std::map<std::string, Buffer> turing =
      buffers_of(resnet50("t4", {.precision = Precision::fp16}, 2, 64));
  EXPECT_EQ(turing.at("images").bytes, 2u * 64 * 64 * 8 * 2);
  EXPECT_EQ(turing.at("conv1.weight.half").bytes, 64u * 49 * 8 * 2);
  EXPECT_EQ(half.at("layer1.0.bn3.mask").bytes, 2u * 16 * 16 * 256 / 8);
  const std::map<std::string, Buffer> single = buffers_of(small({.precision = Precision::fp32}));
  EXPECT_EQ(single.at("images").bytes, 2u * 64 * 64 * 4 * 4);
  EXPECT_EQ(single.at("conv1.weight.gradient").bytes, 64u * 49 * 4 * 4);
}

TEST(CudaDescribe, AllowsTf32OnlyWhenAsked) {
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
    EXPECT_EQ(small({.precision = precision}).allow_tf32, precision == Precision::tf32);
}

TEST(CudaDescribe, StrictFp32IsNchwOnGpusBeforeHopperOrWhereAsked) {
  const auto layout = [](const std::string& target, const DescribeOptions& options) {
    return resnet50(target, options, 2, 64).layout;
  };
  for (const char* old : {"v100-16gb", "t4", "a100-80gb"}) {
    EXPECT_EQ(layout(old, {}), TensorLayout::nchw) << old;
    EXPECT_EQ(layout(old, {.precision = Precision::fp16}), TensorLayout::nhwc) << old;
    EXPECT_EQ(layout(old, {.layout = TensorLayout::nhwc}), TensorLayout::nhwc) << old;
  }
  for (const char* later : {"h100", "h200"}) {
    EXPECT_EQ(layout(later, {}), TensorLayout::nhwc) << later;
    EXPECT_EQ(layout(later, {.layout = TensorLayout::nchw}), TensorLayout::nchw) << later;
  }
  EXPECT_FALSE(layout("cpu", {}));
}

TEST(CudaDescribe, DepthwiseNetworksAndOtherPrecisionsAreNhwc) {
  const Graph y1 = make_arcface({.backbone = kMobileFaceNet, .batch = 2, .embedding = 128, .classes = 10});
  EXPECT_EQ(describe(y1, {}, *find_target("v100-16gb")).layout, TensorLayout::nhwc);
  expect_error(ExitCode::usage, {"--layout", "nchw", "y1", "depthwise", "leave it out"},
               [&] { describe(y1, {.layout = TensorLayout::nchw}, *find_target("v100-16gb")); });
  for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16})
    expect_error(ExitCode::usage, {"--layout", "nchw", std::string(name_of(precision))},
                 [&] { small({.precision = precision, .layout = TensorLayout::nchw}); });
}

TEST(CudaDescribe, NchwPadsNoChannelsAndMasksByTheOutput) {
  const Program program = small({.layout = TensorLayout::nchw});
  const std::map<std::string, Buffer> buffers = buffers_of(program);
  EXPECT_EQ(buffers.at("images").bytes, 4u * 2 * 3 * 64 * 64);
  EXPECT_EQ(buffers.at("conv1.weight").bytes, 4u * 64 * 3 * 7 * 7);
  EXPECT_FALSE(buffers.contains("layer1.0.bn3.mask"));
  EXPECT_EQ(operand_of(program, "layer1.0.bn3.backward", "out"), "r layer1.0.bn3");
  EXPECT_NE(reduction_hash(program), reduction_hash(small({.layout = TensorLayout::nhwc})));
}

TEST(CudaDescribe, StagesLoadedBatchesInTwoHalves) {
  const Program program = small({.precision = Precision::fp16, .load_batch_every_step = true});
  EXPECT_EQ(operands_of(program, "load_batch"),
            (Operands{"images w images.staged", "labels w labels.staged"}));
  EXPECT_EQ(operands_of(program, "pack_batch"),
            (Operands{"staged_images r images.staged", "staged_labels r labels.staged", "state r state",
                      "images w images", "labels w labels"}));
  const std::map<std::string, Buffer> buffers = buffers_of(program);
  const Buffer& images = buffers.at("images.staged");
  EXPECT_EQ(images.dims, (std::vector<std::int64_t>{2, 2, 64, 64, 3}));
  EXPECT_EQ(images.dtype, DType::u8);
  EXPECT_TRUE(images.persistent);
  const Buffer& labels = buffers.at("labels.staged");
  EXPECT_EQ(labels.dims, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(labels.dtype, DType::i32);
  EXPECT_TRUE(labels.persistent);
}

TEST(CudaDescribe, LooksForOverflowsOnlyIfTheLossIsScaled) {
  const Program plain = small({.precision = Precision::fp16});
  EXPECT_EQ(count_kind<FindOverflow>(plain), 0u);
  EXPECT_FALSE(buffers_of(plain).contains("overflow"));
  EXPECT_EQ(operands_of(plain, "advance_state"), Operands{"state rw state"});

  const Program scaled = small({.precision = Precision::fp16, .scale_loss = true});
  const Buffer overflow = buffers_of(scaled).at("overflow");
  EXPECT_EQ(overflow.role, Role::overflow);
  EXPECT_EQ(overflow.bytes, 4u);
  EXPECT_TRUE(overflow.persistent);
  EXPECT_EQ(operand_of(scaled, "find_overflow", "overflow"), "w overflow");
  EXPECT_EQ(instruction_named(scaled, "find_overflow").as<FindOverflow>()->gradients.size(), 161u);
  EXPECT_EQ(operand_of(scaled, "update", "state"), "r state");
  EXPECT_EQ(operand_of(scaled, "update", "overflow"), "r overflow");
  EXPECT_EQ(operands_of(scaled, "advance_state"), (Operands{"state rw state", "overflow r overflow"}));
  const std::size_t last = scaled.instructions.size() - 1;
  EXPECT_TRUE(scaled.instructions[last - 2].as<FindOverflow>());
  EXPECT_TRUE(scaled.instructions[last - 1].as<Update>());
  EXPECT_TRUE(scaled.instructions[last].as<AdvanceState>());
}

TEST(CudaDescribe, FoldsTheBlocksEndIntoItsNorm) {
  const Program program = small({.precision = Precision::fp16, .fuse = false});
  EXPECT_EQ(count_kind<Update>(program), 1u);
  EXPECT_EQ(count_kind<Accumulate>(program), 0u);
}

TEST(CudaDescribe, KeepsItsStateAndWhatTheLossNeeds) {
  const Program program = small({.precision = Precision::fp32});
  EXPECT_EQ(buffers_of(program).at("state").bytes, sizeof(cuda::State));
  for (const Instruction& instruction : program.instructions) {
    if (instruction.as<SoftmaxCrossEntropy>()) {
      EXPECT_EQ(instruction.workspace_bytes, 2u * 16);
    }
  }
}

}  // namespace
}  // namespace plumb
