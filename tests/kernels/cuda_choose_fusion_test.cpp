// The choice between fused engines and plain steps, from made-up times.
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

bool gathers_statistics(const Step& step) {
  const auto* conv = step.as<ConvForward>();
  return conv && conv->sums;
}
bool normalizes_input(const Step& step) {
  const auto* conv = step.as<ConvForward>();
  const auto* weights = step.as<ConvBackwardWeights>();
  return (conv && conv->scale_shift) || (weights && weights->scale_shift);
}
bool is_fused(const Step& step) {
  return gathers_statistics(step) || normalizes_input(step) || step.as<ConvNormBackwardData>();
}

std::size_t fused_steps(const Program& program) {
  return static_cast<std::size_t>(std::count_if(program.steps.begin(), program.steps.end(), is_fused));
}

TEST(ChooseFusion, KeepsEveryPatternWhereNothingSpeaksAgainst) {
  EXPECT_TRUE(choose([](const Program&, const Step&) { return StepCost{}; }).empty());
  EXPECT_TRUE(choose([](const Program&, const Step& step) {
                return StepCost{is_fused(step) ? 1e-9 : 1e-3, ""};
              }).empty());
}

TEST(ChooseFusion, GivesUpEveryPatternThatIsSlowerThanItsPlainSteps) {
  const auto plain = choose([](const Program&, const Step& step) {
    return StepCost{is_fused(step) ? 1.0 : 1e-3, ""};
  });
  EXPECT_EQ(fused_steps(described_with(plain)), 0U);
  EXPECT_NE(plain.front().reason.find("ms faster"), std::string::npos) << plain.front().reason;
}

TEST(ChooseFusion, GivesUpOnlyWhatNothingComputes) {
  const auto cost = [](const Program&, const Step& step) {
    return StepCost{0, step.as<ConvNormBackwardData>() ? "no engine" : ""};
  };
  const auto plain = choose(cost);
  ASSERT_FALSE(plain.empty());
  for (const PlainLayer& layer : plain) {
    EXPECT_EQ(layer.pattern, FusedPattern::norm_backward_data);
    EXPECT_EQ(layer.reason, "no engine");
  }
  for (const Step& step : described_with(plain).steps)
    EXPECT_TRUE(cost({}, step).failure.empty()) << step.name;
  EXPECT_GT(fused_steps(described_with(plain)), 30U);
}

// Without statistics there is nothing that normalises its input either.
TEST(ChooseFusion, GivesUpAPatternWithWhatNeedsIt) {
  const auto plain = choose([](const Program&, const Step& step) {
    return StepCost{0, gathers_statistics(step) ? "no engine" : ""};
  });
  for (const Step& step : described_with(plain).steps)
    EXPECT_FALSE(gathers_statistics(step) || normalizes_input(step)) << step.name;
}

// An engine that is slow in one layer says nothing about the others.
TEST(ChooseFusion, DecidesLayerByLayer) {
  const auto plain = choose([](const Program&, const Step& step) {
    return StepCost{step.name == "layer2.1.conv2.forward" && is_fused(step) ? 1.0 : 1e-3, ""};
  });
  std::set<std::string> layers;
  for (const PlainLayer& layer : plain) layers.insert(name_of(graph().ops[layer.op]));
  EXPECT_EQ(layers, std::set<std::string>{"layer2.1.conv2"});
}

TEST(ChooseFusion, TellsThePersonWhoAsksForTheTable) {
  const auto plain = choose([](const Program&, const Step& step) {
    return StepCost{0, step.as<ConvNormBackwardData>() ? "no engine for this" : ""};
  });
  DescribeOptions options{.precision = Precision::fp16};
  options.plain = plain;
  EXPECT_NE(cuda::fusion_text(graph(), options, *find_target("h200")).find("no engine for this"),
            std::string::npos);
}

}  // namespace
}  // namespace plumb::cuda
