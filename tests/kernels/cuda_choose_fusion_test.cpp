// The choice between fused engines and plain instructions, with made-up times.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/cuda/plan/choose_fusion.h"
#include "kernels/cuda/plan/fusion.h"
#include "models/resnet50.h"

namespace plumb::cuda {
namespace {

const Graph& graph() {
  static const Graph made = make_resnet50({.batch = 2, .image_size = 64});
  return made;
}

std::vector<PlainLayer> choose(const CostOf& cost_of) {
  return choose_fusion(graph(), {.precision = Precision::fp16}, *find_target("h200"), cost_of);
}

Program described_with(const std::vector<PlainLayer>& plain) {
  DescribeOptions options{.precision = Precision::fp16};
  options.plain = plain;
  return cuda::describe(graph(), options, *find_target("h200"));
}

// The layer's line of fusion_text().
std::string row_of(const std::string& layer, const std::vector<PlainLayer>& plain) {
  DescribeOptions options{.precision = Precision::fp16};
  options.plain = plain;
  const std::string text = cuda::fusion_text(graph(), options, *find_target("h200"));
  const std::size_t start = text.find("  " + layer + " ");
  return text.substr(start, text.find('\n', start) - start);
}

bool gathers_statistics(const Instruction& instruction) {
  const auto* conv = instruction.as<ConvForward>();
  return conv && conv->sums;
}
bool normalizes_input(const Instruction& instruction) {
  const auto* conv = instruction.as<ConvForward>();
  const auto* weights = instruction.as<ConvBackwardWeights>();
  return (conv && conv->scale_shift) || (weights && weights->scale_shift);
}
bool completes_gradient(const Instruction& instruction) {
  const auto* conv = instruction.as<ConvBackwardData>();
  return conv && conv->relu_mask;
}
// Of a block that ends without its convolution's output.
bool is_of_product_norm(const Instruction& instruction) {
  return instruction.as<ChannelProducts>() || instruction.as<ProductNormStatistics>() ||
         instruction.as<BlockEndForward>() || instruction.as<ProductNormBackward>() ||
         instruction.as<BlockEndBackwardData>();
}
bool is_fused(const Instruction& instruction) {
  return gathers_statistics(instruction) || normalizes_input(instruction) ||
         completes_gradient(instruction) || instruction.as<ConvNormBackwardData>() ||
         is_of_product_norm(instruction);
}
// Gradients of plain convolutions take longer: completing one pays, although the block's end then has an
// instruction of its own. The more instructions of an end without its convolution's output are short.
double usual_seconds(const Instruction& instruction) {
  if (is_of_product_norm(instruction)) return 1e-4;
  return instruction.as<ConvBackwardData>() && !completes_gradient(instruction) ? 3e-3 : 1e-3;
}

std::size_t count_if(const Program& program, bool (*which)(const Instruction&)) {
  return static_cast<std::size_t>(std::ranges::count_if(program.instructions, which));
}

std::size_t fused_instructions(const Program& program) {
  return count_if(program, is_fused);
}

TEST(ChooseFusion, KeepsEveryPatternWhereNothingSpeaksAgainst) {
  EXPECT_TRUE(choose([](const Program&, const Instruction&) { return InstructionCost{}; }).empty());
  EXPECT_TRUE(choose([](const Program&, const Instruction& instruction) {
                return InstructionCost{is_fused(instruction) ? 1e-9 : usual_seconds(instruction), ""};
              }).empty());
}

TEST(ChooseFusion, GivesUpEveryPatternThatIsSlowerThanItsPlainSteps) {
  const auto plain = choose([](const Program&, const Instruction& instruction) {
    return InstructionCost{is_fused(instruction) ? 1.0 : 1e-3, ""};
  });
  EXPECT_EQ(fused_instructions(described_with(plain)), 0U);
  EXPECT_NE(plain.front().reason.find("ms faster"), std::string::npos) << plain.front().reason;
}

TEST(ChooseFusion, GivesUpOnlyWhatNothingComputes) {
  const auto cost = [](const Program&, const Instruction& instruction) {
    return InstructionCost{0, instruction.as<ConvNormBackwardData>() ? "no engine" : ""};
  };
  const auto plain = choose(cost);
  ASSERT_FALSE(plain.empty());
  for (const PlainLayer& layer : plain) {
    EXPECT_EQ(layer.pattern, FusedPattern::norm_backward_data);
    EXPECT_EQ(layer.reason, "no engine");
  }
  for (const Instruction& instruction : described_with(plain).instructions)
    EXPECT_TRUE(cost({}, instruction).failure.empty()) << instruction.name;
  EXPECT_GT(fused_instructions(described_with(plain)), 30U);
}

// Every layer is told of its own fault, also where another pattern of an earlier layer fails, too.
TEST(ChooseFusion, GivesEveryLayerItsOwnReason) {
  const auto plain = choose([](const Program&, const Instruction& instruction) {
    if (gathers_statistics(instruction) && instruction.name == "layer1.0.conv1.forward")
      return InstructionCost{0, "no statistics"};
    return InstructionCost{0, instruction.as<ConvNormBackwardData>() ? "no backward" : ""};
  });
  std::set<FusedPattern> patterns;
  for (const PlainLayer& layer : plain) {
    patterns.insert(layer.pattern);
    EXPECT_EQ(layer.reason,
              layer.pattern == FusedPattern::norm_backward_data ? "no backward" : "no statistics");
  }
  EXPECT_EQ(patterns, (std::set{FusedPattern::norm_backward_data, FusedPattern::statistics}));
}

// Without statistics, nothing can normalize its input either.
TEST(ChooseFusion, GivesUpAPatternWithWhatNeedsIt) {
  const auto plain = choose([](const Program&, const Instruction& instruction) {
    return InstructionCost{0, gathers_statistics(instruction) ? "no engine" : ""};
  });
  for (const Instruction& instruction : described_with(plain).instructions)
    EXPECT_FALSE(gathers_statistics(instruction) || normalizes_input(instruction)) << instruction.name;
}

TEST(ChooseFusion, LeavesGradientsToNormsWhereNothingCompletesThem) {
  const auto plain = choose([](const Program&, const Instruction& instruction) {
    return InstructionCost{usual_seconds(instruction), completes_gradient(instruction) ? "no algorithm" : ""};
  });
  EXPECT_EQ(plain.size(), 15U);
  for (const PlainLayer& layer : plain) {
    EXPECT_EQ(layer.pattern, FusedPattern::block_end_gradient);
    EXPECT_EQ(layer.reason, "no algorithm");
  }
  const Program program = described_with(plain);
  EXPECT_EQ(count_if(program, completes_gradient), 0U);
}

TEST(ChooseFusion, CompletesAGradientOnlyWhereThatIsFaster) {
  const auto plain = choose([](const Program&, const Instruction& instruction) {
    const bool slow = completes_gradient(instruction) && instruction.name == "layer3.2.conv1.backward_data";
    return InstructionCost{slow ? 1.0 : usual_seconds(instruction), ""};
  });
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(name_of(graph().ops[plain.front().op]), "layer3.2.conv1");
  EXPECT_NE(plain.front().reason.find("ms faster"), std::string::npos) << plain.front().reason;
}

TEST(ChooseFusion, LeavesOutAConvolutionsOutputOnlyWhereThatIsFaster) {
  const auto plain = choose([](const Program&, const Instruction& instruction) {
    const bool slow = instruction.as<BlockEndForward>() && instruction.name == "layer2.1.bn3.forward";
    return InstructionCost{slow ? 1.0 : usual_seconds(instruction), ""};
  });
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(plain.front().pattern, FusedPattern::product_norm);
  EXPECT_EQ(name_of(graph().ops[plain.front().op]), "layer2.1.conv3");
  EXPECT_NE(plain.front().reason.find("ms faster"), std::string::npos) << plain.front().reason;
  const Program program = described_with(plain);
  EXPECT_EQ(count_if(program, [](const Instruction& one) { return one.as<BlockEndForward>() != nullptr; }),
            15U);
  EXPECT_EQ(count_if(program, completes_gradient), 15U);
  EXPECT_NE(row_of("layer2.1.bn3", plain).find(plain.front().reason), std::string::npos)
      << row_of("layer2.1.bn3", plain);
}

TEST(ChooseFusion, StoresConvolutionsOutputsWhereNothingComputesTheirProducts) {
  const auto plain = choose([](const Program&, const Instruction& instruction) {
    return InstructionCost{usual_seconds(instruction),
                           instruction.as<ChannelProducts>() ? "no algorithm" : ""};
  });
  EXPECT_EQ(plain.size(), 20U);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(plain[i].pattern, i < 4 ? FusedPattern::product_shortcut : FusedPattern::product_norm);
    EXPECT_EQ(plain[i].reason, "no algorithm");
  }
  const Program program = described_with(plain);
  EXPECT_EQ(count_if(program, is_of_product_norm), 0U);
  EXPECT_EQ(count_if(program, completes_gradient), 15U);
}

// A slow engine in one layer doesn't affect the others.
TEST(ChooseFusion, DecidesLayerByLayer) {
  const auto plain = choose([](const Program&, const Instruction& instruction) {
    const bool slow = instruction.name == "layer2.1.conv2.forward" && is_fused(instruction);
    return InstructionCost{slow ? 1.0 : usual_seconds(instruction), ""};
  });
  std::set<std::string> layers;
  for (const PlainLayer& layer : plain) layers.insert(name_of(graph().ops[layer.op]));
  EXPECT_EQ(layers, std::set<std::string>{"layer2.1.conv2"});
}

TEST(ChooseFusion, TellsThePersonWhoAsksForTheTable) {
  const auto plain = choose([](const Program&, const Instruction& instruction) {
    return InstructionCost{0, instruction.as<ConvNormBackwardData>() ? "no engine for this" : ""};
  });
  DescribeOptions options{.precision = Precision::fp16};
  options.plain = plain;
  EXPECT_NE(cuda::fusion_text(graph(), options, *find_target("h200")).find("no engine for this"),
            std::string::npos);
}

}  // namespace
}  // namespace plumb::cuda
