// --find-max-bs on emulated GPUs, one per rank, if a batch has no engine long before memory is full.
#include <cstdlib>

#include "base/console/print.h"
#include "bench/run/tasks.h"
#include "tests/bench/run/small_resnet.h"
#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

constexpr std::int64_t kElementsPerImage = 64 * 16 * 16;  // the largest tensor at 32 pixels

class FindMaxBatch : public MpiTest {
 protected:
  void SetUp() override {
    setenv("EMULATED_CONV_MOST_ELEMENTS", std::to_string(kElementsPerImage).c_str(), 1);
  }
  void TearDown() override { unsetenv("EMULATED_CONV_MOST_ELEMENTS"); }
};

TEST_F(FindMaxBatch, GoesOnBelowABatchWithoutAnEngine) {
  if (job().size() != 2) return;  // a try takes seconds
  BenchOptions options = default_options("bench_resnet50", small_resnet());
  options.device = DeviceChoice::cuda;
  options.cuda_graph = CudaGraph::off;
  options.image_size = 32;
  options.threads = 1;
  Messages messages(stderr, terminal_of(stderr), Loudness::quiet);
  const MaxBatch found = find_max_batch(job(), options, messages, 4.46e7);
  EXPECT_EQ(found.largest_planned, 2);
  EXPECT_EQ(found.search.batch, 1);
  for (const BatchTry& one : found.search.tries) {
    EXPECT_EQ(one.ran, one.batch <= 1) << one.batch;
    EXPECT_EQ(one.no_engine, one.batch > 1) << one.batch;
  }
}

}  // namespace
}  // namespace plumb
