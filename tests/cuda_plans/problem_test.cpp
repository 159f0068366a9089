// The convolution problem an instruction poses to an engine.
#include <gtest/gtest.h>

#include <algorithm>

#include "absent_gpu.h"
#include "kernels/cuda/plan/depthwise_shape.h"
#include "models/arcface.h"
#include "problems.h"

namespace plumb::cuda {
namespace {

WantedPlan find(const std::vector<WantedPlan>& plans, const std::string& instruction) {
  const auto found = std::find_if(plans.begin(), plans.end(), [&](const WantedPlan& plan) {
    return plan.instruction == "resnet50 " + instruction;
  });
  if (found == plans.end()) throw std::out_of_range(instruction);
  return *found;
}

TEST(ConvProblem, HasTheChannelsThatTheImagesArePaddedTo) {
  const auto half = wanted_plans(h200().limits(), {.precision = Precision::fp16, .fuse = false});
  const auto older = wanted_plans(t4().limits(), {.precision = Precision::fp16, .fuse = false});
  const auto single = wanted_plans(h200().limits(), {.precision = Precision::fp32, .fuse = false});
  for (const std::string instruction : {"conv1.forward", "conv1.backward_weights"}) {
    EXPECT_EQ(find(half, instruction).problem.c, 4) << instruction;
    EXPECT_EQ(find(single, instruction).problem.c, 4) << instruction;
    EXPECT_EQ(find(older, instruction).problem.c, 8) << instruction;
  }
}

TEST(ConvProblem, SaysWhatIsFusedAndWhatItReads) {
  ConvProblem problem{.n = 2, .h = 7, .w = 7, .c = 64, .out_h = 7, .out_w = 7, .out_c = 64, .groups = 2};
  problem.fusion = {.normalizes_input = true, .gathers_statistics = true};
  problem.scale_shift_dtype = DType::f16;
  EXPECT_EQ(
      text_of(problem),
      "conv_forward 2x7x7x64 to 7x7x64, kernel 1, stride 1, padding 0, groups 2, f32, normalizes its input "
      "by f16 factors, gathers statistics");
}

TEST(ConvProblem, TellsTf32FromStrictF32) {
  const auto strict = wanted_plans(h200().limits(), {.precision = Precision::fp32, .fuse = false});
  const auto tf32 = wanted_plans(h200().limits(), {.precision = Precision::tf32, .fuse = false});
  ASSERT_EQ(strict.size(), tf32.size());
  for (std::size_t i = 0; i < strict.size(); ++i) {
    EXPECT_NE(text_of(strict[i].problem), text_of(tf32[i].problem));
  }
}

TEST(ConvProblem, TakesTheDtypeOfTheFactorsThatItsStepReads) {
  const auto plans = wanted_plans(h200().limits(), {.precision = Precision::fp16, .fuse = true});
  std::size_t normalizing = 0;
  for (const WantedPlan& plan : plans) {
    if (!plan.problem.fusion.normalizes_input) continue;
    ++normalizing;
    EXPECT_EQ(plan.problem.scale_shift_dtype, DType::f16) << plan.instruction;
  }
  EXPECT_GT(normalizing, 0);
}

// Their instructions request no plan, so nothing may be fused into them.
TEST(DepthwiseInstructions, AreDescribedPlainlyWithTheirOwnLayoutAndWorkspace) {
  const Graph graph =
      make_arcface({.backbone = kMobileFaceNet, .batch = 8, .embedding = 128, .classes = 100});
  for (const Precision precision : {Precision::fp16, Precision::fp32}) {
    const Program program =
        plumb::describe(graph, {.precision = precision, .fp32_head = true}, h200().limits());
    int found = 0;
    for (const Instruction& instruction : program.instructions) {
      const Conv* conv = instruction.op == kNone ? nullptr : std::get_if<Conv>(&graph.ops[instruction.op]);
      if (!conv || !is_depthwise(graph, *conv)) continue;
      ++found;
      const std::vector<BufferUse> uses = instruction.uses();
      EXPECT_EQ(uses.size(), 3U) << instruction.name << " has the operands of a fused one";
      const auto weight =
          std::ranges::find_if(uses, [](const BufferUse& use) { return use.operand.ends_with("weight"); });
      ASSERT_NE(weight, uses.end()) << instruction.name;
      EXPECT_EQ(program.buffers[weight->buffer].layout, kDepthwiseLayout) << instruction.name;
      const auto* weights = instruction.as<ConvBackwardWeights>();
      EXPECT_EQ(
          instruction.workspace_bytes,
          weights ? depthwise_workspace_bytes(window_shape(graph, *conv), program.buffers[weights->in].dtype)
                  : 0)
          << instruction.name;
    }
    EXPECT_EQ(found, 3 * 17);
  }
}

}  // namespace
}  // namespace plumb::cuda
