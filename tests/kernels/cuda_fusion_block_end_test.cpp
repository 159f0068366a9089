// Fusion at the ends of blocks: residuals and shortcuts' norms added forward, gradients completed backward.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/fused_resnet50.h"

namespace plumb::cuda {
namespace {

TEST(Fusion, AShortcutsNormIsNormalisedWhereItIsAddedOnEveryGpu) {
  for (const int compute_capability : {75, 80, 90}) {
    const Program program = with_stored_outputs(compute_capability);
    const Operands operands = operands_of(program, "layer1.0.bn3.forward");
    for (const char* operand :
         {"in r layer1.0.conv3", "out w layer1.0.bn3", "relu_mask w layer1.0.bn3.mask",
          "residual r layer1.0.downsample.0", "residual_scale_shift r layer1.0.downsample.1.scale_shift"})
      EXPECT_EQ(std::ranges::count(operands, operand), 1) << operand;
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

TEST(Fusion, ABlocksEndIsAStepOfItsOwnWhichKeepsTheBitsOfItsMask) {
  for (const int compute_capability : {80, 90}) {
    const Program program = with_stored_outputs(compute_capability);
    EXPECT_EQ(count_kind<BatchNormStatistics>(program), 0u);
    EXPECT_TRUE(has_instruction(program, "layer1.0.bn3.forward"));
    EXPECT_TRUE(has_buffer(program, "layer1.0.bn3.mask"));
    EXPECT_FALSE(has_instruction(program, "layer1.0.bn2.forward"));
    EXPECT_FALSE(has_buffer(program, "layer1.0.bn2"));
    EXPECT_EQ(operand_of(with_plain_ends(compute_capability), "layer1.1.bn3.backward", "relu_mask"),
              "r layer1.1.bn3.mask");
  }
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
    const Program program = with_stored_outputs(compute_capability);
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
  const Program program = with_stored_outputs(90);
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
    EXPECT_EQ(operands_of(program, "layer4.2.bn3.mask_gradient"),
              (Operands{"d_out r layer4.2.bn3.gradient_by.avgpool", "relu_mask r layer4.2.bn3.mask",
                        "d_in w layer4.2.bn3.gradient_by.layer4.2.bn3", "sums w layer4.2.bn3.bias.gradient",
                        "counters rw norm_counters"}));
  }
}

// Also the last one, whose gradient is not completed.
TEST(Fusion, BlocksEndWithoutTheOutputOfTheirLastConvolution) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  for (const int compute_capability : {80, 86, 89, 90, 100, 120}) {
    for (const Precision precision : {Precision::fp16, Precision::bf16}) {
      for (const bool deterministic : {false, true}) {
        const DescribeOptions options{.precision = precision, .deterministic = deterministic};
        const std::vector<LayerFusion> layers = plan_fusion(graph, options, gpu(compute_capability));
        const Program program = plumb::describe(graph, options, gpu(compute_capability));
        std::set<std::string> without;
        for (const LayerFusion& layer : layers) {
          if (!layer.product) continue;
          const std::string conv = name_of(graph.ops[*layer.product]), layer_name = conv.substr(0, 8);
          without.insert(conv);
          const std::string norm = name_of(graph.ops[*layers[*layer.product].norm_of_product]);
          const bool ends_block = conv.ends_with(".conv3");
          EXPECT_EQ(norm, layer_name + (ends_block ? ".bn3" : ".downsample.1"));
          EXPECT_FALSE(has_buffer(program, conv)) << conv;
          EXPECT_FALSE(has_buffer(program, conv + ".gradient_by." + norm)) << conv;
          EXPECT_EQ(has_buffer(program, norm), ends_block) << "the block's output";
        }
        EXPECT_EQ(without.size(), 16u + 4);
      }
    }
  }
}

TEST(Fusion, BlocksEndWithTheirConvolutionsOutputWhereNothingElseWorks) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  const auto ends = [&](const DescribeOptions& options, int compute_capability) {
    return count_kind<BlockEndForward>(plumb::describe(graph, options, gpu(compute_capability)));
  };
  EXPECT_EQ(ends({.precision = Precision::fp16}, 80), 16u);
  EXPECT_EQ(ends({.precision = Precision::fp16}, 60), 0u);
  EXPECT_EQ(ends({.precision = Precision::bf16}, 75), 0u);
  EXPECT_EQ(ends({.precision = Precision::fp16, .fuse = false}, 90), 0u);
  EXPECT_EQ(ends({.precision = Precision::fp16, .overlap_weights = true}, 90), 0u);
  EXPECT_EQ(ends({.precision = Precision::tf32}, 75), 0u);
  EXPECT_EQ(ends({.layout = TensorLayout::nchw}, 90), 0u);
}

// Where our own kernels don't run: by a library's products, and the usual backward of the norm in front. An
// instruction of its own masks and sums both gradients of the block's output.
TEST(Fusion, BlocksEndByALibrarysProductsInF32AndBeforeAmpere) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  for (const auto& [precision, compute_capability] : {std::pair{Precision::fp16, 70},
                                                      {Precision::fp16, 75},
                                                      {Precision::tf32, 80},
                                                      {Precision::tf32, 90},
                                                      {Precision::fp32, 70},
                                                      {Precision::fp32, 90}}) {
    SCOPED_TRACE(testing::Message() << name_of(precision) << " sm_" << compute_capability);
    DescribeOptions options{.precision = precision};
    if (precision == Precision::fp32) options.layout = TensorLayout::nhwc;
    const Program program = plumb::describe(graph, options, gpu(compute_capability));
    EXPECT_EQ(count_kind<MaskedGradient>(program), 16u);
    EXPECT_EQ(count_kind<BlockEndBackwardData>(program), 16u + 4);
    for (const Instruction& instruction : program.instructions) {
      const auto* forward = instruction.as<BlockEndForward>();
      const auto* data = instruction.as<BlockEndBackwardData>();
      if (!forward && !data) continue;
      EXPECT_TRUE(forward ? forward->by_products : data->by_products) << instruction.name;
      EXPECT_GT(instruction.workspace_bytes, 0u) << instruction.name;
    }
    EXPECT_EQ(operands_of(program, "layer1.2.bn3.mask_gradient"),
              (Operands{"d_out r layer1.2.bn3.gradient_by.layer2.0.conv1",
                        "second_d_out r layer2.0.downsample.0.d_in", "relu_mask r layer1.2.bn3.mask",
                        "d_in w layer1.2.bn3.gradient_by.layer1.2.bn3", "sums w layer1.2.bn3.bias.gradient",
                        "counters rw norm_counters"}));
    EXPECT_EQ(operand_of(program, "layer1.1.bn3.mask_gradient", "second_d_out"),
              "r layer1.1.bn3.gradient_by.layer1.2.conv1");
    EXPECT_EQ(operand_of(program, "layer1.1.conv3.backward_data", "norm_in"), "");
    EXPECT_EQ(operand_of(program, "layer1.1.bn2.backward", "d_out"),
              "r layer1.1.bn2.gradient_by.layer1.1.conv3");
    EXPECT_FALSE(has_buffer(program, "layer1.1.conv3"));
    EXPECT_FALSE(has_buffer(program, "layer1.0.downsample.0"));
    // A copy that is rounded for tensor cores, even of all pixels.
    EXPECT_EQ(has_buffer(program, "layer1.0.downsample.0.in"), precision == Precision::tf32);
  }
}

// Where only the shortcut's convolution has an output, its norm goes back as usual.
TEST(Fusion, AStoredShortcutsNormHasABackwardOfItsOwnWhereNoConvolutionSumsTheGradient) {
  const Program program = with_stored_shortcuts(75);
  EXPECT_EQ(operand_of(program, "layer2.0.bn3.forward", "residual"), "r layer2.0.downsample.0");
  EXPECT_EQ(operand_of(program, "layer2.0.downsample.1.backward", "d_out"),
            "r layer2.0.bn3.gradient_by.layer2.0.bn3");
  EXPECT_EQ(operand_of(program, "layer2.0.downsample.1.backward", "d_bias"),
            "w layer2.0.downsample.1.bias.gradient");
  EXPECT_EQ(operand_of(program, "layer2.0.conv3.backward_weights", "d_bias"), "");
  EXPECT_EQ(operand_of(program, "layer1.2.bn3.mask_gradient", "d_out"),
            "r layer1.2.bn3.gradient_by.layer2.0.downsample.0");
}

// Forward: statistics come from products of the convolution's input, and one product ends the block.
TEST(Fusion, ABlockEndsWithOneProductWhoseStatisticsComeFromItsInput) {
  for (const int compute_capability : {80, 90, 100}) {
    const Program program = resnet50(compute_capability);
    EXPECT_EQ(operand_of(program, "layer1.1.bn2.forward", "out_sums"), "w layer1.1.bn2.channel_sums");
    EXPECT_EQ(
        operands_of(program, "layer1.1.conv3.in_products"),
        (Operands{"left r layer1.1.bn2", "right r layer1.1.bn2", "products w layer1.1.conv3.in_products"}));
    EXPECT_EQ(operands_of(program, "layer1.1.bn3.statistics"),
              (Operands{"products r layer1.1.conv3.in_products", "sums r layer1.1.bn2.channel_sums",
                        "weight r layer1.1.conv3.weight", "scaled w layer1.1.conv3.scaled",
                        "scaled_transposed w layer1.1.conv3.scaled_transposed",
                        "deviations w layer1.1.conv3.deviations", "scale r layer1.1.bn3.weight",
                        "bias r layer1.1.bn3.bias", "running_mean rw layer1.1.bn3.running_mean",
                        "running_variance rw layer1.1.bn3.running_var",
                        "scale_shift w layer1.1.bn3.scale_shift", "inv_std w layer1.1.bn3.inv_std"}));
    EXPECT_EQ(operands_of(program, "layer1.1.bn3.forward"),
              (Operands{"in r layer1.1.bn2", "scaled_transposed r layer1.1.conv3.scaled_transposed",
                        "scale_shift r layer1.1.bn3.scale_shift", "residual r layer1.0.bn3",
                        "out w layer1.1.bn3", "relu_mask w layer1.1.bn3.mask"}));
    EXPECT_FALSE(has_instruction(program, "layer1.1.conv3.forward"));
    const Program stored = with_stored_shortcuts(compute_capability);
    EXPECT_EQ(operand_of(stored, "layer1.0.bn3.forward", "residual"), "r layer1.0.downsample.0");
    EXPECT_EQ(operand_of(stored, "layer1.0.bn3.forward", "residual_scale_shift"),
              "r layer1.0.downsample.1.scale_shift");
  }
}

// The same for the shortcut's convolution, from the pixels that it reads: of stride 1 all, else a copy.
TEST(Fusion, ABlockEndsWithTwoProductsWhereItsShortcutHasAConvolution) {
  for (const int compute_capability : {80, 90, 100}) {
    const Program program = resnet50(compute_capability);
    EXPECT_EQ(
        operands_of(program, "layer1.0.downsample.0.sample"),
        (Operands{"in r maxpool", "sums w layer1.0.downsample.0.channel_sums", "counters rw norm_counters"}));
    EXPECT_EQ(operands_of(program, "layer2.0.downsample.0.sample"),
              (Operands{"in r layer1.2.bn3", "out w layer2.0.downsample.0.in",
                        "sums w layer2.0.downsample.0.channel_sums", "counters rw norm_counters"}));
    const Instruction& sample = instruction_named(program, "layer2.0.downsample.0.sample");
    EXPECT_DOUBLE_EQ(sample.work.macs, 0);
    EXPECT_NEAR(sample.work.bytes, 2 * 2.0 * 2 * 8 * 8 * 256, 4096) << "reads a quarter";
    EXPECT_EQ(operands_of(program, "layer2.0.downsample.0.in_products"),
              (Operands{"left r layer2.0.downsample.0.in", "right r layer2.0.downsample.0.in",
                        "products w layer2.0.downsample.0.in_products"}));
    EXPECT_EQ(operand_of(program, "layer2.0.downsample.1.statistics", "sums"),
              "r layer2.0.downsample.0.channel_sums");
    EXPECT_EQ(operands_of(program, "layer2.0.bn3.forward"),
              (Operands{"in r layer2.0.bn2", "scaled_transposed r layer2.0.conv3.scaled_transposed",
                        "scale_shift r layer2.0.bn3.scale_shift",
                        "residual_scale_shift r layer2.0.downsample.1.scale_shift",
                        "shortcut_in r layer2.0.downsample.0.in",
                        "shortcut_scaled_transposed r layer2.0.downsample.0.scaled_transposed",
                        "out w layer2.0.bn3", "relu_mask w layer2.0.bn3.mask"}));
    EXPECT_EQ(operand_of(program, "layer1.0.bn3.forward", "shortcut_in"), "r maxpool");
    EXPECT_FALSE(has_buffer(program, "layer2.0.downsample.0"));
  }
}

// One gradient goes back through both convolutions; the shortcut's has the pixels that it read, and the
// convolution that completes the gradient in front adds it there.
TEST(Fusion, AShortcutsProductGoesBackFromTheGradientOfTheBlocksOutput) {
  for (const int compute_capability : {80, 90, 100}) {
    const Program program = resnet50(compute_capability);
    const std::string gradient = "layer2.0.bn3.gradient_by.layer2.1.conv1";
    const Operands completed = operands_of(program, "layer2.1.conv1.backward_data");
    EXPECT_EQ(completed.back(), "d_bias w layer2.0.bn3.bias.gradient");
    EXPECT_EQ(operand_of(program, "layer2.0.conv3.backward_data", "d_out"), "r " + gradient);
    EXPECT_EQ(operands_of(program, "layer2.0.downsample.0.gradient_products"),
              (Operands{"left r " + gradient, "right r layer2.0.downsample.0.in",
                        "products w layer2.0.downsample.0.gradient_products"}));
    EXPECT_EQ(operand_of(program, "layer2.0.downsample.0.backward_weights", "d_out_sums"),
              "r layer2.0.bn3.bias.gradient");
    EXPECT_EQ(operand_of(program, "layer2.0.downsample.0.backward_weights", "d_bias"),
              "w layer2.0.downsample.1.bias.gradient");
    EXPECT_EQ(operands_of(program, "layer2.0.downsample.0.backward_data"),
              (Operands{"d_out r " + gradient, "in r layer2.0.downsample.0.in",
                        "scaled r layer2.0.downsample.0.scaled", "factors r layer2.0.downsample.0.factors",
                        "shift r layer2.0.downsample.0.shift", "d_in w layer2.0.downsample.0.d_in"}));
    EXPECT_EQ(operand_of(program, "layer2.0.conv1.backward_data", "added"), "r layer2.0.downsample.0.d_in");
    EXPECT_EQ(operand_of(program, "layer1.0.downsample.0.backward_data", "d_in"),
              "w maxpool.gradient_by.layer1.0.downsample.0");
    EXPECT_FALSE(has_instruction(program, "layer2.0.downsample.1.backward"));
  }
}

// Backward: the convolution behind sums the gradient of the block's output. The parameters' gradients and the
// data's read that gradient and the convolution's input.
TEST(Fusion, ABlockGoesBackFromTheGradientOfItsOutput) {
  for (const int compute_capability : {80, 90, 100}) {
    const Program program = resnet50(compute_capability);
    const Operands completed = operands_of(program, "layer1.2.conv1.backward_data");
    EXPECT_EQ(Operands(completed.begin() + 3, completed.end()),
              (Operands{"added r layer1.2.bn3.gradient_by.layer2.0.conv1", "relu_mask r layer1.1.bn3.mask",
                        "d_bias w layer1.1.bn3.bias.gradient"}));
    EXPECT_FALSE(has_instruction(program, "layer1.1.bn3.backward"));
    const std::string gradient = "layer1.1.bn3.gradient_by.layer1.2.conv1";
    EXPECT_EQ(operands_of(program, "layer1.1.conv3.gradient_products"),
              (Operands{"left r " + gradient, "right r layer1.1.bn2",
                        "products w layer1.1.conv3.gradient_products"}));
    EXPECT_EQ(operands_of(program, "layer1.1.conv3.backward_weights"),
              (Operands{"products r layer1.1.conv3.gradient_products",
                        "d_out_sums r layer1.1.bn3.bias.gradient", "sums r layer1.1.bn2.channel_sums",
                        "deviations r layer1.1.conv3.deviations", "weight r layer1.1.conv3.weight",
                        "scale r layer1.1.bn3.weight", "inv_std r layer1.1.bn3.inv_std",
                        "d_weight w layer1.1.conv3.weight.gradient", "d_scale w layer1.1.bn3.weight.gradient",
                        "factors w layer1.1.conv3.factors", "shift w layer1.1.conv3.shift"}));
    EXPECT_EQ(
        operands_of(program, "layer1.1.conv3.backward_data"),
        (Operands{"d_out r " + gradient, "in r layer1.1.bn2", "scaled r layer1.1.conv3.scaled",
                  "factors r layer1.1.conv3.factors", "shift r layer1.1.conv3.shift",
                  "norm_in r layer1.1.conv2", "scale_shift r layer1.1.bn2.scale_shift",
                  "mean r layer1.1.bn2.mean", "inv_std r layer1.1.bn2.inv_std", "scale r layer1.1.bn2.weight",
                  "d_in w layer1.1.bn2.gradient_by.layer1.1.conv3", "d_scale w layer1.1.bn2.weight.gradient",
                  "d_bias w layer1.1.bn2.bias.gradient", "coefficients w layer1.1.bn2.coefficients"}));
    EXPECT_EQ(operand_of(program, "layer1.1.bn2.backward", "coefficients"), "r layer1.1.bn2.coefficients");
  }
}

TEST(Fusion, AShortcutOfStrideTwoIsAProductOnlyWhereTheGradientInFrontIsMaskedWithIt) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  const auto plain = [&](const char* conv, FusedPattern pattern) {
    const auto found = std::ranges::find(graph.ops, conv, [](const Op& op) { return name_of(op); });
    return PlainLayer{static_cast<std::size_t>(found - graph.ops.begin()), pattern, "to compare"};
  };
  const auto without = [&](std::vector<PlainLayer> layers) {
    return plumb::describe(graph, {.precision = Precision::fp16, .plain = std::move(layers)}, gpu(90));
  };
  const PlainLayer gradient = plain("layer2.0.conv1", FusedPattern::block_end_gradient);
  EXPECT_FALSE(has_buffer(without({gradient}), "layer2.0.downsample.0"));
  const Program program = without({gradient, plain("layer1.2.conv3", FusedPattern::product_norm)});
  EXPECT_TRUE(has_buffer(program, "layer2.0.downsample.0"));
  EXPECT_FALSE(has_buffer(program, "layer1.0.downsample.0"));
  EXPECT_FALSE(has_buffer(program, "layer3.0.downsample.0"));
}

// Where the shortcut's convolution has an output, the gradient is summed for the shortcut's norm, whose own
// pass follows; both norms' biases have the same gradient.
TEST(Fusion, AShortcutsNormGoesBackInAStepOfItsOwnWhereTheBlockEndsWithoutItsConvolutionsOutput) {
  const Program program = with_stored_shortcuts(90);
  const Operands completed = operands_of(program, "layer1.1.conv1.backward_data");
  EXPECT_EQ(Operands(completed.begin() + 5, completed.end()),
            (Operands{"norm_in r layer1.0.downsample.0", "mean r layer1.0.downsample.1.mean",
                      "inv_std r layer1.0.downsample.1.inv_std", "scale r layer1.0.downsample.1.weight",
                      "d_scale w layer1.0.downsample.1.weight.gradient",
                      "d_bias w layer1.0.downsample.1.bias.gradient",
                      "coefficients w layer1.0.downsample.1.coefficients"}));
  EXPECT_EQ(operands_of(program, "layer1.0.downsample.1.backward"),
            (Operands{"d_activated r layer1.0.bn3.gradient_by.layer1.1.conv1", "in r layer1.0.downsample.0",
                      "coefficients r layer1.0.downsample.1.coefficients",
                      "d_in w layer1.0.downsample.0.gradient_by.layer1.0.downsample.1"}));
  EXPECT_EQ(operand_of(program, "layer1.0.conv3.backward_weights", "d_out_sums"),
            "r layer1.0.downsample.1.bias.gradient");
  EXPECT_EQ(operand_of(program, "layer1.0.conv3.backward_weights", "d_bias"), "w layer1.0.bn3.bias.gradient");
}

}  // namespace
}  // namespace plumb::cuda
