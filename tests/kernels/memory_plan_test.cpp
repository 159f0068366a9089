#include "kernels/program/memory_plan.h"

#include <gtest/gtest.h>

#include "tests/kernels/live_bytes.h"
#include "tests/kernels/random_program.h"

namespace plumb {
namespace {

constexpr Access kRead = Access::read, kWrite = Access::write;

std::vector<std::vector<InstructionId>> instructions_of_roots(const Program& program) {
  std::vector<std::vector<InstructionId>> instructions(program.buffers.size());
  for (InstructionId id = 0; id < program.instructions.size(); ++id) {
    for (const BufferUse& use : program.instructions[id].uses())
      instructions[root_of(program, use.buffer)].push_back(id);
  }
  return instructions;
}

bool has_memory(const Program& program, BufferId id,
                const std::vector<std::vector<InstructionId>>& instructions) {
  const Buffer& buffer = program.buffers[id];
  return !buffer.view && (buffer.persistent || !instructions[id].empty());
}

bool overlaps(std::size_t begin_a, std::size_t bytes_a, std::size_t begin_b, std::size_t bytes_b) {
  return begin_a < begin_b + bytes_b && begin_b < begin_a + bytes_a;
}

TEST(MemoryPlan, BuffersOfRandomProgramsShareMemoryOnlyIfAllTheirUsesAreOrdered) {
  std::size_t shared = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Program program = random_program(seed);
    const MemoryPlan plan = plan_memory(program, 64);
    const auto order = brute_force_order(program);
    const auto instructions = instructions_of_roots(program);
    const auto all_before = [&](BufferId a, BufferId b) {
      for (InstructionId step_a : instructions[a]) {
        for (InstructionId step_b : instructions[b]) {
          if (!order[step_a][step_b]) return false;
        }
      }
      return true;
    };
    for (BufferId a = 0; a < program.buffers.size(); ++a) {
      for (BufferId b = a + 1; b < program.buffers.size(); ++b) {
        if (!has_memory(program, a, instructions) || !has_memory(program, b, instructions)) continue;
        if (!overlaps(plan.offsets[a], program.buffers[a].bytes, plan.offsets[b], program.buffers[b].bytes)) {
          continue;
        }
        ++shared;
        EXPECT_FALSE(program.buffers[a].persistent || program.buffers[b].persistent) << "seed " << seed;
        EXPECT_TRUE(all_before(a, b) || all_before(b, a)) << "seed " << seed << ", " << a << ", " << b;
      }
    }
  }
  EXPECT_GT(shared, 100u);
}

TEST(MemoryPlan, EverythingOfRandomProgramsLiesInsideTheArenaAlignedAndApartFromWorkspaces) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Program program = random_program(seed);
    const MemoryPlan plan = plan_memory(program, 256);
    const auto instructions = instructions_of_roots(program);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      EXPECT_EQ(plan.workspace_offsets[lane] % 256, 0u);
      EXPECT_LE(plan.workspace_offsets[lane] + plan.workspace_bytes[lane], plan.arena_bytes);
    }
    for (const Instruction& instruction : program.instructions) {
      EXPECT_GE(plan.workspace_bytes[static_cast<std::size_t>(instruction.lane)],
                instruction.workspace_bytes);
    }
    for (BufferId id = 0; id < program.buffers.size(); ++id) {
      const Buffer& buffer = program.buffers[id];
      if (buffer.view) {
        EXPECT_EQ(plan.offsets[id], plan.offsets[buffer.view->root] + buffer.view->offset);
      }
      if (!has_memory(program, id, instructions)) continue;
      EXPECT_EQ(plan.offsets[id] % 256, 0u);
      EXPECT_LE(plan.offsets[id] + buffer.bytes, plan.workspace_offsets[0]);
    }
  }
}

TEST(MemoryPlan, IsNeverBelowWhatIsLiveAtOnce) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Program program = random_program(seed);
    EXPECT_GE(plan_memory(program, 64).arena_bytes, largest_live_bytes(program)) << "seed " << seed;
  }
}

TEST(MemoryPlan, AnUnusedBufferTakesMemoryOnlyIfItIsPersistent) {
  Program program;
  program.buffers = {{.name = "kept", .bytes = 5000, .persistent = true}, {.name = "unused", .bytes = 5000}};
  EXPECT_EQ(plan_memory(program).arena_bytes, 8192u);
  EXPECT_EQ(largest_live_bytes(program), 5000u);
}

TEST(MemoryBytes, RolesAddUpToTheArena) {
  Program program;
  program.buffers = {{.name = "weight", .role = Role::parameter, .bytes = 8192, .persistent = true},
                     {.name = "running_mean", .role = Role::statistic, .bytes = 4096, .persistent = true},
                     {.name = "state", .role = Role::state, .bytes = 4096, .persistent = true},
                     {.name = "bucket", .role = Role::gradient, .bytes = 12288, .persistent = true},
                     {.name = "gradient", .role = Role::gradient, .bytes = 12288, .view = View{3, 0}},
                     {.name = "momentum", .role = Role::optimizer, .bytes = 20480, .persistent = true},
                     {.name = "images", .role = Role::input, .bytes = 28672, .persistent = true},
                     {.name = "activation", .role = Role::activation, .bytes = 36864}};
  program.instructions = {{.operation = Recorded{{{7, kWrite}}}, .workspace_bytes = 45056},
                          {.operation = Recorded{{{3, Access::read_write}}},
                           .lane = Lane::communication,
                           .workspace_bytes = 4096}};
  const MemoryBytes bytes = memory_bytes(program, plan_memory(program));
  EXPECT_EQ(bytes.parameters, 16384u);
  EXPECT_EQ(bytes.gradients, 12288u);
  EXPECT_EQ(bytes.optimizer, 20480u);
  EXPECT_EQ(bytes.activations, 28672u + 36864u);
  EXPECT_EQ(bytes.workspace, 45056u + 4096u);
  EXPECT_EQ(bytes.planned, 8192u + 4096 + 4096 + 12288 + 20480 + 28672 + 36864 + 45056 + 4096);
}

}  // namespace
}  // namespace plumb
