#include "kernels/program/dependencies.h"

#include <gtest/gtest.h>

#include "tests/kernels/random_program.h"

namespace plumb {
namespace {

constexpr Access kRead = Access::read, kWrite = Access::write;

Program with_steps(const std::vector<std::pair<Lane, AnyOperand>>& uses) {
  Program program;
  program.buffers = {{.name = "root", .bytes = 100},
                     {.name = "left", .bytes = 50, .view = View{0, 0}},
                     {.name = "right", .bytes = 50, .view = View{0, 50}},
                     {.name = "middle", .bytes = 20, .view = View{0, 40}}};
  for (const auto& [lane, use] : uses)
    program.instructions.push_back({.operation = Recorded{{use}}, .lane = lane});
  return program;
}

using Waits = std::vector<std::vector<InstructionId>>;

TEST(Dependencies, AReadWaitsForTheWriteOfAnotherLane) {
  EXPECT_EQ(cross_lane_dependencies(with_steps({{Lane::input, {0, kWrite}}, {Lane::compute, {0, kRead}}})),
            (Waits{{}, {0}}));
}

TEST(Dependencies, AWriteWaitsForReadsAndWritesOfAnotherLane) {
  EXPECT_EQ(cross_lane_dependencies(with_steps({{Lane::input, {0, kRead}}, {Lane::compute, {0, kWrite}}})),
            (Waits{{}, {0}}));
  EXPECT_EQ(cross_lane_dependencies(with_steps({{Lane::input, {0, kWrite}}, {Lane::compute, {0, kWrite}}})),
            (Waits{{}, {0}}));
}

TEST(Dependencies, ReadersDontWaitForEachOther) {
  EXPECT_EQ(cross_lane_dependencies(with_steps({{Lane::input, {0, kRead}}, {Lane::compute, {0, kRead}}})),
            (Waits{{}, {}}));
}

TEST(Dependencies, StepsOfOneLaneNeedNoWait) {
  const Program program = with_steps({{Lane::compute, {0, kWrite}}, {Lane::compute, {0, kRead}}});
  EXPECT_EQ(cross_lane_dependencies(program), (Waits{{}, {}}));
  EXPECT_TRUE(HappensBefore(program)(0, 1));
  EXPECT_FALSE(HappensBefore(program)(1, 0));
}

TEST(Dependencies, ViewsConflictOnlyWhereTheirBytesOverlap) {
  EXPECT_EQ(cross_lane_dependencies(with_steps({{Lane::compute, {1, kWrite}}, {Lane::input, {2, kWrite}}})),
            (Waits{{}, {}}));
  EXPECT_EQ(cross_lane_dependencies(with_steps({{Lane::compute, {1, kWrite}}, {Lane::input, {3, kRead}}})),
            (Waits{{}, {0}}));
  EXPECT_EQ(cross_lane_dependencies(with_steps({{Lane::compute, {2, kWrite}}, {Lane::input, {0, kRead}}})),
            (Waits{{}, {0}}));
}

TEST(Dependencies, OnlyTheLatestStepOfALaneIsWaitedFor) {
  const Program program = with_steps(
      {{Lane::compute, {1, kWrite}}, {Lane::compute, {2, kWrite}}, {Lane::communication, {0, kRead}}});
  EXPECT_EQ(cross_lane_dependencies(program), (Waits{{}, {}, {1}}));
}

TEST(Dependencies, AWaitThatFollowsFromAnotherIsLeftOut) {
  const Program program = with_steps(
      {{Lane::input, {0, kWrite}}, {Lane::compute, {0, kWrite}}, {Lane::communication, {0, kRead}}});
  EXPECT_EQ(cross_lane_dependencies(program), (Waits{{}, {0}, {1}}));
  EXPECT_TRUE(HappensBefore(program)(0, 2));
}

TEST(Dependencies, HappensBeforeIsWhatBruteForceFindsInRandomPrograms) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    const Program program = random_program(seed);
    const HappensBefore happens_before(program);
    const auto expected = brute_force_order(program);
    for (InstructionId a = 0; a < program.instructions.size(); ++a) {
      for (InstructionId b = 0; b < program.instructions.size(); ++b) {
        ASSERT_EQ(happens_before(a, b), expected[a][b]) << "seed " << seed << ", steps " << a << ", " << b;
      }
    }
  }
}

TEST(Dependencies, WaitsAreAtMostOnePerOtherLaneAndNoneIsSuperfluous) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    const Program program = random_program(seed);
    const auto order = brute_force_order(program);
    const Waits waits = cross_lane_dependencies(program);
    for (InstructionId instruction = 0; instruction < program.instructions.size(); ++instruction) {
      std::array<int, kLanes> of_lane{};
      for (InstructionId wait : waits[instruction]) {
        EXPECT_LT(wait, instruction);
        EXPECT_NE(program.instructions[wait].lane, program.instructions[instruction].lane);
        EXPECT_EQ(++of_lane[static_cast<std::size_t>(program.instructions[wait].lane)], 1);
        for (InstructionId other : waits[instruction]) EXPECT_FALSE(order[wait][other]) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace plumb
