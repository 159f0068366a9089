#include <gtest/gtest.h>

#include "bench/output/profile.h"
#include "tests/bench/output/profiled_program.h"

namespace plumb {
namespace {

// profiled_program() with an allreduce of 2 MB and an allgather of 4 MB.
Program program_with_collectives() {
  Program program = profiled_program();
  program.instructions[kReduce].operation = Collective{.elements = 1'000'000, .dtype = DType::f16};
  program.instructions[kUpdate].operation =
      Collective{.kind = Collective::Kind::allgather, .elements = 1'000'000, .dtype = DType::f32};
  return program;
}

TEST(CollectiveTimes, AreMediansOverTheIterations) {
  const Program program = program_with_collectives();
  std::vector<InstructionTime> times = three_iterations();
  for (InstructionTime& time : times)
    if (time.instruction == kReduce) {
      time.end += 1;  // the first iteration only
      break;
    }
  const std::vector<double> seconds = collective_seconds(program, times);
  ASSERT_EQ(seconds.size(), 2U);
  EXPECT_NEAR(seconds[0], 5e-3, 1e-12);
  EXPECT_NEAR(seconds[1], 0.5e-3, 1e-12);
  EXPECT_EQ(collective_seconds(program, {}), (std::vector<double>{0, 0}));
  EXPECT_TRUE(collective_seconds({}, times).empty());
}

TEST(CollectiveTimes, OfAllRanksMakeOneRecordPerCollective) {
  const std::vector<double> seconds{4e-3, 8e-3, 1e-3, 2e-3};  // of rank 0, then of rank 1
  const auto records = collective_records(program_with_collectives(), seconds);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].name, "reduce.0");
  EXPECT_EQ(records[0].kind, "allreduce_sum");
  EXPECT_EQ(records[0].bytes, 2'000'000);
  EXPECT_DOUBLE_EQ(records[0].bus_bytes_per_second.max, 2e9);
  EXPECT_EQ(records[1].kind, "allgather");
  EXPECT_EQ(records[1].bytes, 4'000'000);
  EXPECT_EQ(records[1].seconds.max, 8e-3);
  EXPECT_DOUBLE_EQ(records[1].bus_bytes_per_second.min, 0.25e9);
  EXPECT_EQ(records[1].slowest_rank, 0);
  EXPECT_EQ(records[1].last_rank, 1);
}

}  // namespace
}  // namespace plumb
