// Where the collectives of a margin loss lie in a Program.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/program/describe.h"
#include "tests/kernels/margin_setup.h"

namespace plumb {
namespace {

MarginSetup spread_over(int ranks, Head head) {
  return {.ranks = ranks, .images = 3, .embedding = 24, .classes = 101, .head = head};
}

TEST(MarginLowering, SpreadHeadsMeetInTheOrderThatPublishedOnesHave) {
  const MarginSetup setup = spread_over(3, Head::sampled);
  const auto device = cpu::make_device({.choice = DeviceChoice::cpu});
  const Program program = describe(margin_graph(setup, 1), {}, device->limits());
  std::vector<std::string> names;
  for (const Instruction& instruction : program.instructions)
    if (instruction.as<Collective>()) names.push_back(instruction.name);
  EXPECT_EQ(names, (std::vector<std::string>{"head.features.allgather", "head.labels.allgather",
                                             "head.row_max.allreduce", "head.row_sums.allreduce",
                                             "head.features.reduce_scatter"}));
}

TEST(MarginLowering, OneRankMeetsNobody) {
  const auto device = cpu::make_device({.choice = DeviceChoice::cpu});
  for (Head head : {Head::replicated, Head::sharded, Head::sampled}) {
    const Program program = describe(margin_graph(spread_over(1, head), 0), {}, device->limits());
    for (const Instruction& instruction : program.instructions) {
      EXPECT_FALSE(instruction.as<Collective>()) << instruction.name;
      EXPECT_FALSE(instruction.as<MarginRescale>()) << instruction.name;
    }
    for (const Buffer& buffer : program.buffers) EXPECT_FALSE(buffer.view) << buffer.name;
  }
}

TEST(MarginLowering, ShardedCentresAreNotReduced) {
  const auto device = cpu::make_device({.choice = DeviceChoice::cpu});
  for (Head head : {Head::replicated, Head::sharded, Head::sampled}) {
    const Program program =
        describe(margin_graph(spread_over(head == Head::replicated ? 1 : 2, head), 0), {}, device->limits());
    for (const Buffer& buffer : program.buffers) {
      if (buffer.role != Role::gradient) continue;
      EXPECT_EQ(buffer.sharded, head != Head::replicated) << buffer.name;
    }
  }
}

}  // namespace
}  // namespace plumb
