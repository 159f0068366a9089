// Gradient reduction beside sharded tensors and a head's collectives.
#include <gtest/gtest.h>

#include "comm/gradient_reduction.h"
#include "kernels/program/dependencies.h"
#include "kernels/program/memory_plan.h"
#include "tests/comm/small_program.h"

namespace plumb {
namespace {

using Kind = Collective::Kind;
using Names = std::vector<std::string>;

GradientReductionOptions one_bucket(bool overlap = true) {
  GradientReductionOptions options;
  options.world_size = 4;
  options.overlap = overlap;
  return options;
}

// Adds a head's collectives after forward (allgathers of features and labels, sums of rows) and after
// backward's first instruction (feature gradients), and the instruction that waits for the latter. Rank
// `rank` of 4.
Program head_program(const std::vector<SmallGradient>& gradients, int rank = 0) {
  Program program = scaled_program(gradients);
  const BufferId first = program.buffers.size();
  const auto own = static_cast<std::size_t>(rank) * 16;
  program.buffers.push_back({.name = "features", .dims = {16}, .bytes = 64});
  program.buffers.push_back({.name = "labels", .dtype = DType::i32, .dims = {16}, .bytes = 64});
  program.buffers.push_back({.name = "d_features", .dims = {16}, .bytes = 64});
  program.buffers.push_back(
      {.name = "own_features", .dims = {4}, .bytes = 16, .view = View{.root = first, .offset = own}});
  program.buffers.push_back(
      {.name = "own_d_features", .dims = {4}, .bytes = 16, .view = View{.root = first + 2, .offset = own}});
  const auto collective = [&](const std::string& name, BufferId buffer, Kind kind) {
    return Instruction{.name = name,
                       .operation = Collective{.kind = kind,
                                               .buffer = buffer,
                                               .elements = 16,
                                               .dtype = program.buffers[buffer].dtype,
                                               .parts = {buffer}},
                       .phase = Phase::reduce,
                       .lane = Lane::communication};
  };
  recorded_uses(program.instructions[0]) = {{first + 3, Access::write}, {first + 1, Access::write}};
  std::vector<AnyOperand>& backward = recorded_uses(program.instructions[1]);
  backward.insert(backward.end(),
                  {{first, Access::read}, {first + 1, Access::read}, {first + 2, Access::write}});
  recorded_uses(program.instructions[2]).push_back({first + 4, Access::read});
  program.instructions.insert(program.instructions.begin() + 2,
                              collective("scatter", first + 2, Kind::reduce_scatter_sum));
  program.instructions.insert(
      program.instructions.begin() + 1,
      {collective("features", first, Kind::allgather), collective("labels", first + 1, Kind::allgather)});
  return program;
}

TEST(ShardedGradient, StaysWhereItIsAndIsNotSummed) {
  const Program before = small_program({{100}, kSharded, {100}});
  const Program program = add_gradient_reduction(before, one_bucket());
  EXPECT_EQ(instruction_names(program),
            (Names{"forward", "backward2", "backward1", "backward0", "bucket0.allreduce", "backward_input",
                   "update0", "update1", "update2"}));
  EXPECT_FALSE(program.buffers[1].view);
  EXPECT_EQ(program.buffers[1].bytes, 100u);
  const Collective reduce = collectives_of(program).at(0);
  ASSERT_EQ(reduce.parts.size(), 2u);
  for (BufferId part : reduce.parts) EXPECT_NE(part, 1u);
  EXPECT_EQ(reduce.elements, 2 * 128u / 4);
}

TEST(ShardedGradient, MayBeReadByAnybody) {
  Program program = small_program({{100}, kSharded});
  recorded_uses(program.instructions[3]).push_back({1, Access::read});  // "backward_input"
  const BufferId state = 2, weight = 3, momentum = 4;
  program.instructions.back().operation = UpdateRows{.parameter = 1,
                                                     .master = weight,
                                                     .momentum = momentum,
                                                     .d_rows = 1,
                                                     .samples = state,
                                                     .sample_count = state,
                                                     .state = state,
                                                     .overflow = {}};
  EXPECT_NO_THROW(add_gradient_reduction(program, one_bucket()));
}

TEST(ShardedGradient, IsSearchedForOverflowsOfWhichAllRanksAreTold) {
  const Program program = add_gradient_reduction(scaled_program({{100}, kSharded}), one_bucket());
  EXPECT_EQ(instruction_names(program),
            (Names{"forward", "backward1", "backward0", "bucket0.allreduce", "backward_input",
                   "find_overflow", "overflow.allreduce", "update"}));
  EXPECT_EQ(instruction_named(program, "find_overflow").uses().size(), 3u);
}

TEST(ShardedGradient, OnlyLeavesTheOverflowToBeSummed) {
  EXPECT_EQ(instruction_names(add_gradient_reduction(scaled_program({kSharded, kSharded}), one_bucket())),
            (Names{"forward", "backward1", "backward0", "backward_input", "find_overflow",
                   "overflow.allreduce", "update"}));
  EXPECT_EQ(instruction_names(add_gradient_reduction(small_program({kSharded}), one_bucket())),
            instruction_names(small_program({kSharded})));
}

TEST(ShardedGradient, OfAnotherDtypeDoesNotMakeABucket) {
  GradientReductionOptions options = one_bucket();
  options.dtype = ReduceDType::fp32;
  const Program program =
      add_gradient_reduction(small_program({{100, DType::f16, true}, {100, DType::f32}}), options);
  EXPECT_EQ(collectives_of(program).size(), 1u);
}

TEST(HeadCollectives, KeepTheirPlacesAndOrder) {
  EXPECT_EQ(instruction_names(add_gradient_reduction(head_program({{100}, kSharded}), one_bucket())),
            (Names{"forward", "features", "labels", "backward1", "scatter", "backward0", "bucket0.allreduce",
                   "backward_input", "find_overflow", "overflow.allreduce", "update"}));
}

TEST(HeadCollectives, KeepTheirPlacesWithoutOverlapToo) {
  EXPECT_EQ(instruction_names(add_gradient_reduction(head_program({{100}, kSharded}), one_bucket(false))),
            (Names{"forward", "features", "labels", "backward1", "scatter", "backward0", "backward_input",
                   "bucket0.allreduce", "find_overflow", "overflow.allreduce", "update"}));
}

TEST(HeadCollectives, StandBetweenTheStepsThatWriteAndRead) {
  const Program program = add_gradient_reduction(head_program({{100}, kSharded}), one_bucket());
  const HappensBefore happens_before(program);
  const auto id_of = [&](const std::string& name) {
    return static_cast<InstructionId>(&instruction_named(program, name) - program.instructions.data());
  };
  EXPECT_TRUE(happens_before(id_of("forward"), id_of("features")));
  EXPECT_TRUE(happens_before(id_of("labels"), id_of("backward1")));
  EXPECT_TRUE(happens_before(id_of("backward1"), id_of("scatter")));
  EXPECT_TRUE(happens_before(id_of("scatter"), id_of("backward0")));
  EXPECT_NO_THROW(plan_memory(program));
}

TEST(HeadCollectives, HaveTheSameHashOnAllRanksThoughPartsLieElsewhere) {
  const auto hash = [](int rank) {
    return reduction_hash(add_gradient_reduction(head_program({{100}, kSharded}, rank), one_bucket()));
  };
  EXPECT_EQ(hash(0), hash(3));
}

TEST(HeadCollectives, OfAShardWithMoreRowsHaveTheSameHash) {
  const auto hash = [](std::size_t bytes) {
    return reduction_hash(
        add_gradient_reduction(head_program({{100}, {.bytes = bytes, .sharded = true}}), one_bucket()));
  };
  EXPECT_EQ(hash(100), hash(104));
}

}  // namespace
}  // namespace plumb
