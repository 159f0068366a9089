// --find-max-bs on the CPUs of all ranks: the plan decides, one step proves it.
#include <algorithm>
#include <vector>

#include "bench/run/find_max_batch.h"
#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

class FindMaxOnCpus : public MpiTest {};

TEST_F(FindMaxOnCpus, AsksThePlanAndRunsTheLargestBatchOnly) {
  if (job().size() > 2) return;  // a step takes a second
  constexpr double kMemory = 9e8;
  BenchOptions options = default_options("bench_resnet50");
  options.device = DeviceChoice::cpu;
  options.image_size = 32;
  options.threads = 1;
  std::vector<std::int64_t> planned;
  std::vector<BatchTry> tried;
  const MaxBatch found = find_max_batch(job(), options,
                                        {.planned =
                                             [&](const MaxBatch& before) {
                                               EXPECT_TRUE(tried.empty());
                                               EXPECT_GT(before.step_seconds, 0);
                                               planned.push_back(before.largest_planned);
                                             },
                                         .tried = [&](const BatchTry& one) { tried.push_back(one); }},
                                        {.memory_bytes = kMemory});
  EXPECT_EQ(planned, std::vector{found.largest_planned});
  EXPECT_GE(found.search.batch, 1);
  EXPECT_LE(found.search.batch, found.largest_planned);
  EXPECT_LT(static_cast<double>(found.planned_bytes), kMemory);
  EXPECT_EQ(tried.size(), found.search.tries.size());
  EXPECT_EQ(std::ranges::count(tried, true, &BatchTry::ran), 1);
  for (const BatchTry& one : tried) {
    EXPECT_EQ(one.ran, one.batch == found.search.batch) << one.batch;
    EXPECT_EQ(one.seconds > 0, one.ran) << "a batch that the plan refuses takes no step: " << one.batch;
  }
}

TEST_F(FindMaxOnCpus, RunsNothingWhereThePlanHasNoRoomForOneImage) {
  BenchOptions options = default_options("bench_resnet50");
  options.device = DeviceChoice::cpu;
  options.image_size = 32;
  options.threads = 1;
  const MaxBatch found = find_max_batch(job(), options, {}, {.memory_bytes = 1e8});
  EXPECT_EQ(found.search.batch, 0);
  for (const BatchTry& one : found.search.tries) EXPECT_FALSE(one.ran) << one.batch;
}

}  // namespace
}  // namespace plumb
