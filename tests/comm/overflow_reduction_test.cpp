// Which ranks learn of an overflow, and when.
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/gradient_reduction.h"
#include "kernels/program/dependencies.h"
#include "kernels/program/describe.h"
#include "kernels/program/targets.h"
#include "models/arcface.h"
#include "models/resnet50.h"
#include "tests/comm/small_program.h"

namespace plumb {
namespace {

using Names = std::vector<std::string>;

GradientReductionOptions limit(std::size_t bytes) {
  GradientReductionOptions options;
  options.buckets = {.last_bucket_bytes = bytes, .bucket_bytes = bytes};
  options.world_size = 2;
  return options;
}

bool reduces_overflows(const Program& program) {
  const Names names = instruction_names(program);
  return std::find(names.begin(), names.end(), "overflow.allreduce") != names.end();
}

TEST(OverflowReduction, IsNotNeededWhereEveryGradientIsSummed) {
  const Program program = add_gradient_reduction(scaled_program({{100}, {100}}), limit(100));
  EXPECT_EQ(instruction_names(program),
            (Names{"forward", "backward1", "bucket0.allreduce", "backward0", "bucket1.allreduce",
                   "backward_input", "find_overflow", "update"}));
}

TEST(OverflowReduction, StandsBetweenTheSearchAndTheUpdate) {
  const Program program = add_gradient_reduction(scaled_program({{100}, kSharded}), limit(100));
  EXPECT_EQ(instruction_names(program),
            (Names{"forward", "backward1", "backward0", "bucket0.allreduce", "backward_input",
                   "find_overflow", "overflow.allreduce", "update"}));
  const Instruction& instruction = instruction_named(program, "overflow.allreduce");
  EXPECT_EQ(instruction.phase, Phase::reduce);
  EXPECT_EQ(instruction.lane, Lane::communication);
  const auto* collective = instruction.as<Collective>();
  ASSERT_TRUE(collective);
  ASSERT_EQ(collective->parts.size(), 1u);
  EXPECT_EQ(collective->parts[0].access(), Access::read_write);
  EXPECT_EQ(program.buffers[collective->buffer].role, Role::overflow);
  EXPECT_EQ(collective->buffer, collective->parts[0].buffer);
  EXPECT_EQ(collective->elements, 1u);
  EXPECT_EQ(collective->dtype, DType::f32);
}

TEST(OverflowReduction, SearchesTheSumsAndTheUpdateWaitsForTheFlag) {
  const Program program = add_gradient_reduction(scaled_program({{100}, kSharded, {100}}), limit(1000));
  const HappensBefore happens_before(program);
  const auto id_of = [&](const std::string& name) {
    return static_cast<InstructionId>(&instruction_named(program, name) - program.instructions.data());
  };
  EXPECT_TRUE(happens_before(id_of("bucket0.allreduce"), id_of("find_overflow")));
  EXPECT_TRUE(happens_before(id_of("find_overflow"), id_of("overflow.allreduce")));
  EXPECT_TRUE(happens_before(id_of("overflow.allreduce"), id_of("update")));
}

TEST(OverflowReduction, SearchesGradientsAfterTheyAreCastBack) {
  GradientReductionOptions options = limit(1000);
  options.dtype = ReduceDType::fp32;
  const Program program =
      add_gradient_reduction(scaled_program({{100, DType::f16}, {100, DType::f16}}), options);
  EXPECT_EQ(instruction_names(program),
            (Names{"forward", "backward1", "backward0", "bucket0.cast", "bucket0.allreduce", "backward_input",
                   "bucket0.cast_back", "find_overflow", "update"}));
  const HappensBefore happens_before(program);
  EXPECT_TRUE(happens_before(6, 7));
}

TEST(OverflowReduction, WithoutOverlapTheFlagStillComesAfterTheSearch) {
  GradientReductionOptions options = limit(100);
  options.overlap = false;
  EXPECT_EQ(instruction_names(add_gradient_reduction(scaled_program({{100}, kSharded, {100}}), options)),
            (Names{"forward", "backward2", "backward1", "backward0", "backward_input", "bucket0.allreduce",
                   "bucket1.allreduce", "find_overflow", "overflow.allreduce", "update"}));
}

TEST(OverflowReduction, IsPartOfAStepWhoseRanksShareOutClassCentresOnly) {
  const DescribeOptions options{.precision = Precision::fp16, .scale_loss = true};
  const auto reduced = [&](const Graph& graph) {
    return add_gradient_reduction(describe(graph, options, *find_target("h200")), {.world_size = 2});
  };
  EXPECT_FALSE(reduces_overflows(reduced(make_resnet50({.batch = 2, .image_size = 64}))));
  const auto faces = [](Head head) {
    return make_arcface(
        {.backbone = kMobileFaceNet, .batch = 2, .classes = 100, .head = head, .world_size = 2});
  };
  EXPECT_FALSE(reduces_overflows(reduced(faces(Head::replicated))));
  EXPECT_TRUE(reduces_overflows(reduced(faces(Head::sharded))));
  EXPECT_TRUE(reduces_overflows(reduced(faces(Head::sampled))));
}

}  // namespace
}  // namespace plumb
