// The choice between fused engines and plain instructions, with made-up times.
#include <gtest/gtest.h>

#include <set>

#include "kernels/cuda/choose_fusion.h"
#include "kernels/cuda/fusion.h"
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

bool gathers_statistics(const Instruction& instruction) {
  const auto* conv = instruction.as<ConvForward>();
  return conv && conv->sums;
}
bool normalizes_input(const Instruction& instruction) {
  const auto* conv = instruction.as<ConvForward>();
  const auto* weights = instruction.as<ConvBackwardWeights>();
  return (conv && conv->scale_shift) || (weights && weights->scale_shift);
}
bool is_fused(const Instruction& instruction) {
  return gathers_statistics(instruction) || normalizes_input(instruction) ||
         instruction.as<ConvNormBackwardData>();
}

std::size_t fused_instructions(const Program& program) {
  return static_cast<std::size_t>(
      std::count_if(program.instructions.begin(), program.instructions.end(), is_fused));
}

TEST(ChooseFusion, KeepsEveryPatternWhereNothingSpeaksAgainst) {
  EXPECT_TRUE(choose([](const Program&, const Instruction&) { return InstructionCost{}; }).empty());
  EXPECT_TRUE(choose([](const Program&, const Instruction& instruction) {
                return InstructionCost{is_fused(instruction) ? 1e-9 : 1e-3, ""};
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

// Without statistics, nothing can normalise its input either.
TEST(ChooseFusion, GivesUpAPatternWithWhatNeedsIt) {
  const auto plain = choose([](const Program&, const Instruction& instruction) {
    return InstructionCost{0, gathers_statistics(instruction) ? "no engine" : ""};
  });
  for (const Instruction& instruction : described_with(plain).instructions)
    EXPECT_FALSE(gathers_statistics(instruction) || normalizes_input(instruction)) << instruction.name;
}

// A slow engine in one layer doesn't affect the others.
TEST(ChooseFusion, DecidesLayerByLayer) {
  const auto plain = choose([](const Program&, const Instruction& instruction) {
    return InstructionCost{instruction.name == "layer2.1.conv2.forward" && is_fused(instruction) ? 1.0 : 1e-3,
                           ""};
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
