// --find-max-bs on emulated GPUs, one per rank, if a batch has no engine long before memory is full.
#include <cstdlib>
#include <vector>

#include "bench/run/find_max_batch.h"
#include "tests/bench/expect_error.h"
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

  // By the plan, this memory fits a batch of 2.
  MaxBatch find(std::int64_t most_elements) {
    BenchOptions options = default_options("bench_resnet50", small_resnet());
    options.device = DeviceChoice::cuda;
    options.cuda_graph = CudaGraph::off;
    options.image_size = 32;
    options.threads = 1;
    return find_max_batch(job(), options, {.tried = [&](const BatchTry& one) { tried.push_back(one); }},
                          {.memory_bytes = 4.46e7, .most_elements = most_elements});
  }

  std::vector<BatchTry> tried;
};

TEST_F(FindMaxBatch, GoesOnBelowABatchWithoutAnEngine) {
  if (job().size() != 2) return;  // a try takes seconds
  const MaxBatch found = find(kElementsPerImage);
  EXPECT_EQ(found.largest_planned, 2);
  EXPECT_EQ(found.search.batch, 1);
  ASSERT_EQ(tried.size(), found.search.tries.size());
  for (const BatchTry& one : tried) {
    EXPECT_EQ(one.ran, one.batch <= 1) << one.batch;
    EXPECT_EQ(one.no_engine, one.batch > 1) << one.batch;
  }
}

// If all of the batch's elements could be indexed, a missing engine doesn't mean the batch is too large.
TEST_F(FindMaxBatch, EndsWhereASmallEnoughBatchHasNoEngine) {
  if (job().size() != 2) return;  // a try takes seconds
  expect_error(ExitCode::internal, {"has no engine for"}, [&] { find(1000 * kElementsPerImage); });
}

}  // namespace
}  // namespace plumb
