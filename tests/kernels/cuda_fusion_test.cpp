// Which fused engines a GPU's Program uses, and the traffic they save.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernels/cuda/fusion.h"
#include "kernels/memory_plan.h"
#include "kernels/roofline.h"
#include "models/resnet50.h"
#include "tests/kernels/described_instructions.h"

namespace plumb::cuda {
namespace {

DeviceLimits gpu(int compute_capability) {
  DeviceLimits limits = *find_target("h200");
  limits.compute_capability = compute_capability;
  return limits;
}

Program resnet50(int compute_capability, bool fuse = true, std::int64_t batch = 2,
                 std::int64_t image_size = 64, bool deterministic = false) {
  return plumb::describe(make_resnet50({.batch = batch, .image_size = image_size}),
                         {.precision = Precision::fp16, .fuse = fuse, .deterministic = deterministic},
                         gpu(compute_capability));
}
Program repeatable_resnet50(int compute_capability) {
  return resnet50(compute_capability, true, 2, 64, true);
}

Program resnet50_without(FusedPattern pattern, int compute_capability, std::int64_t batch,
                         std::int64_t image_size) {
  const Graph graph = make_resnet50({.batch = batch, .image_size = image_size});
  DescribeOptions options{.precision = Precision::fp16};
  for (std::size_t op = 0; op < graph.ops.size(); ++op) options.plain.push_back({op, pattern, "to compare"});
  return plumb::describe(graph, options, gpu(compute_capability));
}
// Without completed gradients.
Program with_plain_ends(int compute_capability, std::int64_t batch = 2, std::int64_t image_size = 64) {
  return resnet50_without(FusedPattern::block_end_gradient, compute_capability, batch, image_size);
}
// With completed gradients that norms sum themselves.
Program with_plain_sums(int compute_capability, std::int64_t batch = 2, std::int64_t image_size = 64) {
  return resnet50_without(FusedPattern::block_end_sums, compute_capability, batch, image_size);
}

bool has_instruction(const Program& program, const std::string& name) {
  return std::any_of(program.instructions.begin(), program.instructions.end(),
                     [&](const Instruction& instruction) { return instruction.name == name; });
}
bool has_buffer(const Program& program, const std::string& name) {
  return std::any_of(program.buffers.begin(), program.buffers.end(),
                     [&](const Buffer& buffer) { return buffer.name == name; });
}

std::map<std::string_view, int> kinds_of(const Program& program) {
  std::map<std::string_view, int> kinds;
  for (const Instruction& instruction : program.instructions) ++kinds[instruction.kind()];
  return kinds;
}

// Number of forward convolutions with this operand.
template <typename Operand>
std::size_t count_with(const Program& program, std::optional<Operand> ConvForward::*operand) {
  return static_cast<std::size_t>(std::count_if(program.instructions.begin(), program.instructions.end(),
                                                [&](const Instruction& instruction) {
                                                  const auto* conv = instruction.as<ConvForward>();
                                                  return conv && conv->*operand;
                                                }));
}

using Operands = std::vector<std::string>;

double megabytes_per_image(const Program& program, std::int64_t batch) {
  return roofline(program, gpu(90), Precision::fp16).bytes / static_cast<double>(batch) / 1e6;
}

TEST(Fusion, OnHopperNoNormButTheLastAndEndsWithAShortcutsNormNeedsAStepThatNormalises) {
  const Program program = with_plain_ends(90);
  std::set<std::string> applied;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.as<BatchNormApply>()) applied.insert(instruction.name);
  }
  EXPECT_EQ(applied,
            (std::set<std::string>{"layer1.0.bn3.forward", "layer2.0.bn3.forward", "layer3.0.bn3.forward",
                                   "layer4.0.bn3.forward", "layer4.2.bn3.forward"}));
  EXPECT_EQ(count_with(program, &ConvForward::residual), 11u);
  EXPECT_EQ(count_kind<BatchNormStatistics>(program), 0u);
}

TEST(Fusion, TheMaxPoolNormalisesTheFirstConvolutionsOutputOnEveryGpu) {
  for (const int compute_capability : {75, 80, 90}) {
    const Program program = resnet50(compute_capability);
    EXPECT_EQ(operands_of(program, "maxpool.forward"),
              (Operands{"in r conv1", "out w maxpool", "argmax w maxpool.argmax",
                        "scale_shift r bn1.scale_shift", "winners w maxpool.winners"}));
    EXPECT_FALSE(has_buffer(program, "bn1"));
  }
}

TEST(Fusion, TheFirstNormGoesBackThroughTheMaxPoolOnEveryGpu) {
  for (const int compute_capability : {75, 80, 90}) {
    for (const bool fuse : {false, true}) {
      const Program program = resnet50(compute_capability, fuse);
      EXPECT_FALSE(has_instruction(program, "maxpool.backward"));
      EXPECT_FALSE(has_buffer(program, "bn1.gradient_by.maxpool"));
      EXPECT_EQ(operands_of(program, "bn1.backward"),
                (Operands{"in r conv1", "winners r maxpool.winners", "argmax r maxpool.argmax",
                          "d_out r maxpool.gradient_by.layer1.0.downsample.0", "scale r bn1.weight",
                          "mean r bn1.mean", "inv_std r bn1.inv_std", "scale_shift r bn1.scale_shift",
                          "d_in w conv1.gradient_by.bn1", "d_scale w bn1.weight.gradient",
                          "d_bias w bn1.bias.gradient", "counters rw norm_counters",
                          "second_d_out r maxpool.gradient_by.layer1.0.conv1"}));
      // In tensors of conv1's size: in and d_in; a quarter of winners, half of that in argmax, and twice a
      // quarter of each d_out.
      const double size = 2.0 * 32 * 32 * 64 * 2;
      EXPECT_NEAR(instruction_named(program, "bn1.backward").work.bytes / size, 2 + 0.375 + 1, 0.02);
    }
  }
}

TEST(Fusion, InNchwTheMaxPoolHasABackwardOfItsOwn) {
  const Program program =
      plumb::describe(make_resnet50({.batch = 2, .image_size = 64}), {.layout = TensorLayout::nchw}, gpu(90));
  EXPECT_TRUE(has_instruction(program, "maxpool.backward"));
  EXPECT_TRUE(has_buffer(program, "bn1.gradient_by.maxpool"));
  EXPECT_FALSE(has_buffer(program, "maxpool.winners"));
  EXPECT_EQ(operand_of(program, "bn1.backward", "scale_shift"), "r bn1.scale_shift");
}

TEST(Fusion, AShortcutsNormIsNormalisedWhereItIsAddedOnEveryGpu) {
  for (const int compute_capability : {75, 80, 90}) {
    const Program program = resnet50(compute_capability);
    EXPECT_EQ(operands_of(program, "layer1.0.bn3.forward"),
              (Operands{"in r layer1.0.conv3", "scale_shift r layer1.0.bn3.scale_shift", "out w layer1.0.bn3",
                        "relu_mask w layer1.0.bn3.mask", "residual r layer1.0.downsample.0",
                        "residual_scale_shift r layer1.0.downsample.1.scale_shift"}));
    EXPECT_FALSE(has_buffer(program, "layer1.0.downsample.1"));
    EXPECT_TRUE(has_buffer(program, "layer1.0.downsample.1.mean"));
  }
}

TEST(Fusion, AShortcutsNormGoesBackWithTheNormThatItIsAddedToOnEveryGpu) {
  for (const int compute_capability : {75, 80, 90}) {
    const Program program = with_plain_ends(compute_capability);
    EXPECT_EQ(count_kind<BatchNormPairBackward>(program), 4u);
    EXPECT_FALSE(has_instruction(program, "layer1.0.downsample.1.backward"));
    EXPECT_EQ(
        operands_of(program, "layer1.0.bn3.backward"),
        (Operands{"in r layer1.0.conv3", "scale r layer1.0.bn3.weight", "mean r layer1.0.bn3.mean",
                  "inv_std r layer1.0.bn3.inv_std", "d_in w layer1.0.conv3.gradient_by.layer1.0.bn3",
                  "d_scale w layer1.0.bn3.weight.gradient", "d_bias w layer1.0.bn3.bias.gradient",
                  "shortcut_in r layer1.0.downsample.0", "shortcut_scale r layer1.0.downsample.1.weight",
                  "shortcut_mean r layer1.0.downsample.1.mean",
                  "shortcut_inv_std r layer1.0.downsample.1.inv_std",
                  "d_shortcut_in w layer1.0.downsample.0.gradient_by.layer1.0.downsample.1",
                  "d_shortcut_scale w layer1.0.downsample.1.weight.gradient",
                  "d_shortcut_bias w layer1.0.downsample.1.bias.gradient",
                  "d_out r layer1.0.bn3.gradient_by.layer1.1.bn3",
                  "second_d_out r layer1.0.bn3.gradient_by.layer1.1.conv1", "relu_mask r layer1.0.bn3.mask",
                  "counters rw norm_counters"}));
  }
}

TEST(Fusion, WithoutAnEngineThatAddsResidualsBlocksEndInAStepOfTheirOwn) {
  const Program program = resnet50(80);
  EXPECT_EQ(count_with(program, &ConvForward::residual), 0u);
  EXPECT_EQ(count_kind<BatchNormStatistics>(program), 0u);
  EXPECT_TRUE(has_instruction(program, "layer1.0.bn3.forward"));
  EXPECT_TRUE(has_buffer(program, "layer1.0.bn3.mask"));
  EXPECT_FALSE(has_instruction(program, "layer1.0.bn2.forward"));
  EXPECT_FALSE(has_buffer(program, "layer1.0.bn2"));
}

// Our own kernels still normalise shortcuts and the max pool's input on the way, and sum gradients of blocks'
// ends.
TEST(Fusion, WhereRunsAreToRepeatBitForBitOnlyOwnKernelsFuse) {
  auto plain = kinds_of(resnet50(90, false));
  plain[BatchNormBackward::kName] -= 11;
  plain.erase(BatchNormPairBackward::kName);
  plain[BatchNormBackwardApply::kName] += 15;
  for (const int compute_capability : {80, 90, 100}) {
    const Program program = repeatable_resnet50(compute_capability);
    EXPECT_EQ(kinds_of(program), plain);
    EXPECT_EQ(count_with(program, &ConvForward::scale_shift), 0u);
    EXPECT_EQ(count_with(program, &ConvForward::sums), 0u);
    EXPECT_EQ(count_kind<BatchNormStatistics>(program), 53u);
    EXPECT_EQ(count_kind<BatchNormApply>(program), 53u - 5);
    EXPECT_TRUE(has_buffer(program, "layer1.0.bn2"));
    EXPECT_FALSE(has_buffer(program, "bn1"));
  }
}

TEST(Fusion, BlackwellGathersStatisticsAndStoresEveryNorm) {
  const Program program = resnet50(100);
  EXPECT_EQ(count_with(program, &ConvForward::scale_shift), 0u);
  EXPECT_EQ(count_with(program, &ConvForward::sums), 53u);
  EXPECT_EQ(count_kind<BatchNormApply>(program), 53u - 5);
  EXPECT_TRUE(has_buffer(program, "layer1.0.bn2"));
}

TEST(Fusion, ANormWithoutAResidualMasksItsGradientByItsScaleAndShiftWhereNoEngineDoes) {
  for (const int compute_capability : {75, 80}) {
    const Program program = resnet50(compute_capability);
    EXPECT_EQ(count_kind<ConvNormBackwardData>(program), 0u);
    EXPECT_EQ(operand_of(program, "layer1.0.bn2.backward", "scale_shift"), "r layer1.0.bn2.scale_shift");
    EXPECT_FALSE(has_buffer(program, "layer1.0.bn2.mask"));
  }
}

TEST(Fusion, StepsReadAndWriteWhatTheirOperandsAreCalled) {
  const Program program = resnet50(90);
  EXPECT_EQ(operands_of(program, "layer1.0.conv2.forward"),
            (Operands{"in r layer1.0.conv1", "weight r layer1.0.conv2.weight.half", "out w layer1.0.conv2",
                      "scale_shift r layer1.0.bn1.scale_shift", "sums w layer1.0.conv2.sums"}));
  EXPECT_EQ(operands_of(with_plain_ends(90), "layer1.2.conv1.forward"),
            (Operands{"in r layer1.1.conv3", "weight r layer1.2.conv1.weight.half", "out w layer1.2.conv1",
                      "scale_shift r layer1.1.bn3.scale_shift", "residual r layer1.0.bn3",
                      "activated w layer1.1.bn3", "sums w layer1.2.conv1.sums"}));
  EXPECT_EQ(
      operands_of(program, "layer1.0.bn1.finalize"),
      (Operands{"sums r layer1.0.conv1.sums", "scale r layer1.0.bn1.weight", "bias r layer1.0.bn1.bias",
                "running_mean rw layer1.0.bn1.running_mean", "running_variance rw layer1.0.bn1.running_var",
                "scale_shift w layer1.0.bn1.scale_shift", "mean w layer1.0.bn1.mean",
                "inv_std w layer1.0.bn1.inv_std"}));
  EXPECT_EQ(
      operands_of(program, "layer1.0.conv2.backward_weights"),
      (Operands{"in r layer1.0.conv1", "d_out r layer1.0.conv2.gradient_by.layer1.0.bn2",
                "d_weight w layer1.0.conv2.weight.gradient", "scale_shift r layer1.0.bn1.scale_shift"}));
  EXPECT_EQ(
      operands_of(program, "layer1.0.conv2.backward_data"),
      (Operands{"d_out r layer1.0.conv2.gradient_by.layer1.0.bn2", "weight r layer1.0.conv2.weight.half",
                "norm_in r layer1.0.conv1", "bias r layer1.0.bn1.bias", "mean r layer1.0.bn1.mean",
                "inv_std r layer1.0.bn1.inv_std", "scale r layer1.0.bn1.weight",
                "d_activated w layer1.0.bn1.gradient_by.layer1.0.conv2",
                "d_scale w layer1.0.bn1.weight.gradient", "d_bias w layer1.0.bn1.bias.gradient",
                "coefficients w layer1.0.bn1.coefficients"}));
  EXPECT_EQ(operands_of(program, "layer1.0.bn1.backward"),
            (Operands{"d_activated r layer1.0.bn1.gradient_by.layer1.0.conv2", "in r layer1.0.conv1",
                      "coefficients r layer1.0.bn1.coefficients",
                      "d_in w layer1.0.conv1.gradient_by.layer1.0.bn1"}));
}

TEST(Fusion, ABlockEndedByAConvolutionMasksItsGradientByItsOutput) {
  EXPECT_EQ(operand_of(with_plain_ends(90), "layer1.1.bn3.backward", "out"), "r layer1.1.bn3");
  EXPECT_EQ(operand_of(with_plain_ends(80), "layer1.1.bn3.backward", "relu_mask"), "r layer1.1.bn3.mask");
}

// The convolution adds what the block's shortcut left: of a plain block its own end's gradient, else that of
// the shortcut's convolution.
TEST(Fusion, TheNextBlocksFirstConvolutionCompletesTheGradientOfABlocksEnd) {
  for (const int compute_capability : {80, 90, 100}) {
    const Program program = with_plain_sums(compute_capability);
    EXPECT_EQ(
        operands_of(program, "layer1.2.conv1.backward_data"),
        (Operands{"d_out r layer1.2.conv1.gradient_by.layer1.2.bn1", "weight r layer1.2.conv1.weight.half",
                  "d_in w layer1.1.bn3.gradient_by.layer1.2.conv1",
                  "added r layer1.2.bn3.gradient_by.layer2.0.conv1", "relu_mask r layer1.1.bn3.mask"}));
    EXPECT_EQ(operand_of(program, "layer2.0.conv1.backward_data", "added"),
              "r layer1.2.bn3.gradient_by.layer2.0.downsample.0");
    EXPECT_EQ(operand_of(program, "layer1.1.bn3.backward", "d_out"),
              "r layer1.1.bn3.gradient_by.layer1.2.conv1");
    for (const char* absent : {"second_d_out", "relu_mask", "out", "d_residual"}) {
      EXPECT_EQ(operand_of(program, "layer1.1.bn3.backward", absent), "") << absent;
      EXPECT_EQ(operand_of(program, "layer2.0.bn3.backward", absent), "") << absent;
    }
  }
}

// The norm's own backward is then one pass, whose gradient is the shortcut's, too.
TEST(Fusion, TheConvolutionThatCompletesAGradientSumsItForTheNorm) {
  for (const int compute_capability : {80, 90, 100}) {
    const Program program = resnet50(compute_capability);
    EXPECT_EQ(
        operands_of(program, "layer1.2.conv1.backward_data"),
        (Operands{"d_out r layer1.2.conv1.gradient_by.layer1.2.bn1", "weight r layer1.2.conv1.weight.half",
                  "d_in w layer1.1.bn3.gradient_by.layer1.2.conv1",
                  "added r layer1.2.bn3.gradient_by.layer2.0.conv1", "relu_mask r layer1.1.bn3.mask",
                  "norm_in r layer1.1.conv3", "mean r layer1.1.bn3.mean", "inv_std r layer1.1.bn3.inv_std",
                  "scale r layer1.1.bn3.weight", "d_scale w layer1.1.bn3.weight.gradient",
                  "d_bias w layer1.1.bn3.bias.gradient", "coefficients w layer1.1.bn3.coefficients"}));
    EXPECT_EQ(operands_of(program, "layer1.1.bn3.backward"),
              (Operands{"d_activated r layer1.1.bn3.gradient_by.layer1.2.conv1", "in r layer1.1.conv3",
                        "coefficients r layer1.1.bn3.coefficients",
                        "d_in w layer1.1.conv3.gradient_by.layer1.1.bn3"}));
    EXPECT_EQ(operand_of(program, "layer1.1.conv1.backward_data", "added"),
              "r layer1.1.bn3.gradient_by.layer1.2.conv1");
  }
}

// With a shortcut's norm it sums for both.
TEST(Fusion, TheConvolutionThatCompletesAGradientSumsItForTheShortcutsNorm) {
  const Program program = resnet50(90);
  const Operands wanted{"norm_in r layer1.0.conv3",
                        "mean r layer1.0.bn3.mean",
                        "inv_std r layer1.0.bn3.inv_std",
                        "scale r layer1.0.bn3.weight",
                        "d_scale w layer1.0.bn3.weight.gradient",
                        "d_bias w layer1.0.bn3.bias.gradient",
                        "coefficients w layer1.0.bn3.coefficients",
                        "shortcut_in r layer1.0.downsample.0",
                        "shortcut_mean r layer1.0.downsample.1.mean",
                        "shortcut_inv_std r layer1.0.downsample.1.inv_std",
                        "shortcut_scale r layer1.0.downsample.1.weight",
                        "d_shortcut_scale w layer1.0.downsample.1.weight.gradient",
                        "d_shortcut_bias w layer1.0.downsample.1.bias.gradient"};
  const Operands operands = operands_of(program, "layer1.1.conv1.backward_data");
  EXPECT_EQ(Operands(operands.begin() + 5, operands.end()), wanted);
  EXPECT_EQ(operands_of(program, "layer1.0.bn3.backward"),
            (Operands{"d_activated r layer1.0.bn3.gradient_by.layer1.1.conv1", "in r layer1.0.conv3",
                      "coefficients r layer1.0.bn3.coefficients",
                      "d_in w layer1.0.conv3.gradient_by.layer1.0.bn3", "shortcut_in r layer1.0.downsample.0",
                      "d_shortcut_in w layer1.0.downsample.0.gradient_by.layer1.0.downsample.1"}));
}

TEST(Fusion, CompletesTheGradientsOfAllBlockEndsButTheLast) {
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    const Program program =
        plumb::describe(make_resnet50({.batch = 2, .image_size = 64}), {.precision = precision}, gpu(90));
    std::set<std::string> masked;
    for (const Instruction& instruction : program.instructions)
      if (const auto* conv = instruction.as<ConvBackwardData>(); conv && conv->relu_mask)
        masked.insert(program.buffers[*conv->relu_mask].name);
    EXPECT_EQ(masked.size(), 15u);
    EXPECT_FALSE(masked.contains("layer4.2.bn3.mask"));
    EXPECT_EQ(operand_of(program, "layer4.2.bn3.backward", "relu_mask"), "r layer4.2.bn3.mask");
  }
}

// The gradient of the last norm's input must not overwrite the one that is added.
TEST(Fusion, ACompletedGradientHasAPlaceOfItsOwn) {
  const Program program = resnet50(90);
  const MemoryPlan plan = plan_memory(program);
  const auto conv = *instruction_named(program, "layer1.2.conv1.backward_data").as<ConvBackwardData>();
  EXPECT_NE(plan.offsets[conv.d_in], plan.offsets[*conv.added]);
}

TEST(Fusion, ScaleAndShiftHaveTheDtypeOfActivationsWhereAConvolutionReadsThem) {
  for (const int compute_capability : {80, 90, 100}) {
    const Program program = resnet50(compute_capability);
    for (const Instruction& instruction : program.instructions) {
      for (const BufferUse& use : instruction.uses()) {
        const Buffer& buffer = program.buffers[use.buffer];
        if (!use.reads() || !buffer.name.ends_with(".scale_shift")) continue;
        if (instruction.as<ConvForward>() || instruction.as<ConvBackwardWeights>()) {
          EXPECT_EQ(buffer.dtype, DType::f16) << instruction.name;
        } else if (instruction.as<BatchNormApply>()) {
          EXPECT_EQ(buffer.dtype, DType::f32) << instruction.name;
        }
      }
    }
  }
}

// MB of memory traffic per image. A count by hand of ResNet-50 in fp16 gives 344 for plain convolutions with
// fused norm, add and ReLU, from which shortcuts and the max pool save 14 here, and 261 for complete
// fusion. The Program moves more than 261: our own kernel reads each end's mask, and the last
// end's sums are a separate pass.
TEST(Fusion, SavesThePassesThatItSays) {
  constexpr std::int64_t kBatch = 256;
  const auto megabytes = [](int compute_capability, bool fuse) {
    return megabytes_per_image(resnet50(compute_capability, fuse, kBatch, 224), kBatch);
  };
  EXPECT_NEAR(megabytes(90, false), 329, 0.005 * 329);
  EXPECT_NEAR(megabytes(100, true), 285, 0.005 * 285);
  EXPECT_NEAR(megabytes(80, true), 272, 0.005 * 272);
  EXPECT_NEAR(megabytes(90, true), 265, 0.005 * 265);
  EXPECT_NEAR(megabytes_per_image(with_plain_sums(90, kBatch, 224), kBatch), 276, 0.005 * 276);
  EXPECT_NEAR(megabytes_per_image(with_plain_ends(80, kBatch, 224), kBatch), 293, 0.005 * 293);
  EXPECT_NEAR(megabytes_per_image(with_plain_ends(90, kBatch, 224), kBatch), 286, 0.005 * 286);
}

// Outside convolutions, a stored norm is read for its statistics, read for normalisation, and written; a
// fused norm needs none of these passes.
TEST(Fusion, CountsThePassesOfEachStep) {
  const Program plain = resnet50(90, false), fused = with_plain_ends(90), ampere = with_plain_sums(80);
  const double size = 2.0 * 16 * 16 * 64 * 2;  // bytes of layer1.0.conv1's output
  const auto passes = [&](const Program& program, const std::string& instruction) {
    return instruction_named(program, instruction).work.bytes / size;
  };
  EXPECT_NEAR(passes(plain, "layer1.0.bn1.statistics"), 1, 0.05);
  EXPECT_NEAR(passes(plain, "layer1.0.bn1.forward"), 2, 0.05);
  EXPECT_NEAR(passes(plain, "layer1.0.bn1.backward"), 5, 0.05);
  EXPECT_NEAR(passes(ampere, "layer1.0.bn1.backward"), 5, 0.05);
  EXPECT_NEAR(passes(fused, "layer1.0.bn1.backward"), 3, 0.05);
  EXPECT_NEAR(passes(fused, "layer1.0.bn1.finalize"), 0, 0.05);
  EXPECT_NEAR(passes(plain, "layer1.0.conv2.backward_data"), 3.13, 0.01);  // with 74 kB of weights
  EXPECT_NEAR(passes(fused, "layer1.0.conv2.backward_data") - passes(plain, "layer1.0.conv2.backward_data"),
              1,
              0.05);  // the norm's input
  // The end of a block with a shortcut: 4 tensors and the mask read, 3 of that size read again, 3 written.
  EXPECT_NEAR(passes(plain, "layer1.0.bn3.backward"), 4 * (10 + 1.0 / 16), 0.3);
  EXPECT_NEAR(passes(plain, "layer1.1.bn3.backward"), 4 * (7 + 1.0 / 16), 0.15);
  // A block's end. Plain: reads in and the residual, writes out and mask. Hopper's next convolution: reads in
  // and the residual instead of out, and writes out.
  EXPECT_NEAR(passes(plain, "layer1.1.bn3.forward"), 4 * (3 + 1.0 / 16), 0.15);
  EXPECT_NEAR(passes(fused, "layer1.2.conv1.forward") - passes(plain, "layer1.2.conv1.forward"), 4 * 2, 0.15);
  EXPECT_NEAR(passes(fused, "layer1.1.bn3.backward") - passes(plain, "layer1.1.bn3.backward"), 4 * 15.0 / 16,
              0.15);
  // A completed gradient: the convolution reads the other part and the mask. The end's norm reads 2 tensors
  // and those again, and writes one; with a shortcut 3, those again, and 2.
  EXPECT_NEAR(passes(ampere, "layer1.2.conv1.backward_data") - passes(plain, "layer1.2.conv1.backward_data"),
              4 * (1 + 1.0 / 16), 0.05);
  EXPECT_NEAR(passes(ampere, "layer1.1.bn3.backward"), 4 * 5, 0.15);
  EXPECT_NEAR(passes(ampere, "layer1.0.bn3.backward"), 4 * 8, 0.3);
  // With sums it reads the norm's input, too, and the norm only reads both tensors once and writes one.
  EXPECT_NEAR(
      passes(resnet50(80), "layer1.2.conv1.backward_data") - passes(ampere, "layer1.2.conv1.backward_data"),
      4, 0.15);
  EXPECT_NEAR(passes(resnet50(80), "layer1.1.bn3.backward"), 4 * 3, 0.15);
  EXPECT_NEAR(
      passes(resnet50(80), "layer1.1.conv1.backward_data") - passes(ampere, "layer1.1.conv1.backward_data"),
      4 * 2, 0.3);
  EXPECT_NEAR(passes(resnet50(80), "layer1.0.bn3.backward"), 4 * 5, 0.15);
}

TEST(Fusion, OffAndElsewhereGivesThePlainProgram) {
  const auto kinds = kinds_of(resnet50(90, false));
  EXPECT_EQ(kinds, kinds_of(resnet50(75)));
  for (const std::string_view kind :
       {BatchNormFinalize::kName, BatchNormBackwardApply::kName, ConvNormBackwardData::kName})
    EXPECT_FALSE(kinds.contains(kind)) << kind;
}

TEST(Fusion, LeavesParametersAndGradientsAsTheyAre) {
  const auto of_parameters = [](const Program& program) {
    std::vector<std::string> described;
    for (const Buffer& buffer : program.buffers) {
      if (buffer.role == Role::parameter || buffer.role == Role::gradient || buffer.role == Role::optimizer ||
          buffer.role == Role::statistic)
        described.push_back(buffer.name + " " + std::string(name_of(buffer.dtype)) + " " +
                            std::to_string(buffer.bytes));
    }
    return described;
  };
  for (const int compute_capability : {80, 90, 100})
    EXPECT_EQ(of_parameters(resnet50(compute_capability)),
              of_parameters(resnet50(compute_capability, false)));
}

// Every temporary is written before it is read, once except for sums, and is read by somebody; every gradient
// is written once.
void expect_sound(const Program& program) {
  EXPECT_NO_THROW(plan_memory(program));
  std::vector<int> writes(program.buffers.size(), 0);
  std::vector<bool> is_read_last(program.buffers.size(), true);
  for (const Instruction& instruction : program.instructions) {
    for (const BufferUse& use : instruction.uses()) {
      writes[use.buffer] += use.access == Access::write;
      is_read_last[use.buffer] = use.access == Access::read;
    }
  }
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (buffer.role != Role::gradient && buffer.persistent) continue;
    EXPECT_EQ(writes[id], 1) << buffer.name;
    EXPECT_TRUE(is_read_last[id]) << buffer.name;
  }
}

TEST(Fusion, DescribesSoundProgramsForEveryGpuAndPrecision) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  for (const int compute_capability : {70, 75, 80, 86, 89, 90, 100, 120}) {
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16}) {
      for (const bool fuse : {false, true}) {
        for (const bool everything_else : {false, true}) {
          SCOPED_TRACE("sm_" + std::to_string(compute_capability) + " " + std::string(name_of(precision)) +
                       (fuse ? " fused" : "") + (everything_else ? " loading, scaled" : ""));
          expect_sound(plumb::describe(graph,
                                       {.precision = precision,
                                        .load_batch_every_step = everything_else,
                                        .fuse = fuse,
                                        .scale_loss = everything_else},
                                       gpu(compute_capability)));
        }
      }
    }
  }
}

TEST(Fusion, TakesNoMoreMemoryThanWithout) {
  for (const int compute_capability : {80, 90, 100})
    EXPECT_LE(plan_memory(resnet50(compute_capability, true, 64, 224)).arena_bytes,
              plan_memory(resnet50(compute_capability, false, 64, 224)).arena_bytes)
        << compute_capability;
}

}  // namespace
}  // namespace plumb::cuda
