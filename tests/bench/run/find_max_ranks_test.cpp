// --find-max-bs on the CPUs of all ranks: the plan decides, one step proves it.
#include <algorithm>

#include "base/console/print.h"
#include "bench/run/tasks.h"
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
  Messages messages(stderr, terminal_of(stderr), Loudness::quiet);
  const MaxBatch found = find_max_batch(job(), options, messages, kMemory);
  EXPECT_GE(found.search.batch, 1);
  EXPECT_LE(found.search.batch, found.largest_planned);
  EXPECT_LT(static_cast<double>(found.planned_bytes), kMemory);
  EXPECT_EQ(std::ranges::count(found.search.tries, true, &BatchTry::ran), 1);
  for (const BatchTry& one : found.search.tries) {
    EXPECT_EQ(one.ran, one.batch == found.search.batch) << one.batch;
    EXPECT_EQ(one.seconds > 0, one.ran) << "a batch that the plan refuses takes no step: " << one.batch;
  }
}

TEST_F(FindMaxOnCpus, RunsNothingWhereThePlanHasNoRoomForOneImage) {
  BenchOptions options = default_options("bench_resnet50");
  options.device = DeviceChoice::cpu;
  options.image_size = 32;
  options.threads = 1;
  Messages messages(stderr, terminal_of(stderr), Loudness::quiet);
  const MaxBatch found = find_max_batch(job(), options, messages, 1e8);
  EXPECT_EQ(found.search.batch, 0);
  for (const BatchTry& one : found.search.tries) EXPECT_FALSE(one.ran) << one.batch;
}

}  // namespace
}  // namespace plumb
