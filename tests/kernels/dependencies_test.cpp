#include "kernels/program/dependencies.h"

#include <gtest/gtest.h>

#include "tests/kernels/random_program.h"

namespace plumb {
namespace {

using Waits = std::vector<std::vector<InstructionId>>;

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

// With the order of each lane's instructions they give the whole order.
TEST(Dependencies, WaitsAreAtMostOnePerOtherLaneAndNoneIsSuperfluous) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    const Program program = random_program(seed);
    const auto order = brute_force_order(program);
    const Waits waits = HappensBefore(program).waits();
    auto by_waits = std::vector(order.size(), std::vector<bool>(order.size(), false));
    for (InstructionId instruction = 0; instruction < program.instructions.size(); ++instruction) {
      std::vector<InstructionId> before = waits[instruction];
      for (InstructionId earlier = 0; earlier < instruction; ++earlier)
        if (program.instructions[earlier].lane == program.instructions[instruction].lane)
          before.push_back(earlier);
      for (const InstructionId one : before)
        for (InstructionId first = 0; first <= one; ++first)
          if (first == one || by_waits[first][one]) by_waits[first][instruction] = true;
      std::array<int, kLanes> of_lane{};
      for (InstructionId wait : waits[instruction]) {
        EXPECT_LT(wait, instruction);
        EXPECT_NE(program.instructions[wait].lane, program.instructions[instruction].lane);
        EXPECT_EQ(++of_lane[static_cast<std::size_t>(program.instructions[wait].lane)], 1);
        for (InstructionId other : waits[instruction]) EXPECT_FALSE(order[wait][other]) << "seed " << seed;
      }
    }
    EXPECT_EQ(by_waits, order) << "seed " << seed;
  }
}

}  // namespace
}  // namespace plumb
