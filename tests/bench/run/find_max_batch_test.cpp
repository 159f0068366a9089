#include "bench/run/find_max_batch.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/program/memory_plan.h"
#include "kernels/program/targets.h"
#include "models/resnet50.h"

namespace plumb {
namespace {

constexpr std::int64_t kHighest = std::int64_t{1} << 24;

BatchSearch search(std::int64_t truth, std::int64_t estimate, std::int64_t highest = kHighest) {
  return search_largest_batch(estimate, highest, [&](std::int64_t batch) {
    EXPECT_GE(batch, 1);
    EXPECT_LE(batch, highest);
    return BatchTry{.batch = batch, .ran = batch <= truth};
  });
}

TEST(SearchLargestBatch, FindsTheTruthFromAnyEstimate) {
  for (const std::int64_t truth : {1, 2, 3, 31, 32, 33, 100, 128, 1000, 1415})
    for (const std::int64_t estimate : {0, 1, 2, 31, 64, 100, 128, 129, 1024, 5000})
      EXPECT_EQ(search(truth, estimate).batch, truth) << "from " << estimate;
}

TEST(SearchLargestBatch, TriesNothingTwice) {
  for (const std::int64_t estimate : {1, 90, 100, 128, 3000}) {
    std::set<std::int64_t> tried;
    for (const BatchTry& one : search(100, estimate).tries) {
      EXPECT_TRUE(tried.insert(one.batch).second) << one.batch;
      EXPECT_EQ(one.ran, one.batch <= 100);
    }
  }
}

TEST(SearchLargestBatch, TakesFewTriesFromAGoodEstimate) {
  EXPECT_EQ(search(1408, 1408).tries.size(), 2U + 5U);  // itself, a stride of 44 above, and the ones between
  EXPECT_LE(search(1390, 1408).tries.size(), 8U);
}

TEST(SearchLargestBatch, KnowsThatNothingRunsAndThatEverythingDoes) {
  EXPECT_EQ(search(0, 500).batch, 0);
  EXPECT_EQ(search(0, 0).batch, 0);
  EXPECT_EQ(search(kHighest, 8).batch, kHighest);
  EXPECT_EQ(search(1000, 2000, 64).batch, 64);
}

TEST(SearchLargestBatch, ThrowsOnWhatIsNoLackOfMemory) {
  EXPECT_THROW(
      search_largest_batch(
          4, 8, [](std::int64_t) -> BatchTry { throw Error(ExitCode::internal, "the device is gone"); }),
      Error);
}

TEST(BatchTry, SaysWhetherMemoryOrAnEngineWasMissing) {
  EXPECT_EQ(to_text(BatchTry{.batch = 8, .ran = true}), "--bs 8 runs");
  EXPECT_EQ(to_text(BatchTry{.batch = 8, .ran = true, .seconds = 41.6}), "--bs 8 runs (took 42 s)");
  EXPECT_EQ(to_text(BatchTry{.batch = 8}), "--bs 8 doesn't fit");
  EXPECT_EQ(to_text(BatchTry{.batch = 2688, .no_engine = true}),
            "--bs 2688 doesn't fit: no engine computes tensors of more than 2147483647 elements");
}

TEST(MaxBatch, SaysWhatWillBeTriedAndHowLongThatTakes) {
  const MaxBatch on_cpu{
      .largest_planned = 287, .memory_bytes = 23.5 * (1 << 30), .in_host_memory = true, .step_seconds = 26.2};
  EXPECT_EQ(search_text(on_cpu),
            "looking for the largest --bs: by the plan 287 fits 23.5 GiB; one step of it takes 26 s or more");
  const MaxBatch on_gpu{.largest_planned = 1408, .memory_bytes = 80.0 * (1 << 30)};
  EXPECT_EQ(
      search_text(on_gpu),
      "looking for the largest --bs: by the plan 1408 fits 80.0 GiB; some ten batches run a step or two, "
      "each takes as long as a run's start");
}

// Beyond 2^32 elements and bytes: nothing counts in 32 bits.
TEST(LargestTensor, GrowsWithTheBatchBeyondWhat32BitsHold) {
  const auto described = [](std::int64_t batch) {
    return describe(make_resnet50({.batch = batch}), {.precision = Precision::fp16}, *find_target("h200"));
  };
  const std::int64_t per_image = 64 * 112 * 112;
  EXPECT_EQ(largest_tensor_elements(described(4)), 4 * per_image);
  EXPECT_EQ(largest_tensor_elements(described(8192)), 8192 * per_image);
  const Program large = described(8192), half = described(4096);
  const auto large_bytes = static_cast<double>(plan_memory(large).arena_bytes);
  const auto half_bytes = static_cast<double>(plan_memory(half).arena_bytes);
  EXPECT_NEAR(large_bytes / half_bytes, 2, 0.01);
  EXPECT_GT(half_bytes, 8e10);
}

TEST(MaxBatch, IsOneLineAndOneObject) {
  MaxBatch found{.device = "some gpu",
                 .precision = Precision::fp16,
                 .world_size = 2,
                 .search = {.batch = 1402, .tries = {{1500, false, true}, {1408, false}, {1402, true}}},
                 .largest_planned = 1408,
                 .planned_bytes = 1 << 30,
                 .peak_bytes = 2U << 30};
  EXPECT_EQ(
      to_text(found),
      "largest batch that runs a step: --bs 1402 (by the plan 1408, 3 tries), planned 1024 MiB, peak 2048 "
      "MiB: fp16, 224 pixels, some gpu\n");
  const nlohmann::ordered_json json = document_json(kMaxBatchSchema, found);
  EXPECT_EQ(json.at("batch_per_device"), 1402);
  EXPECT_EQ(json.at("planned_batch_per_device"), 1408);
  EXPECT_EQ(json.at("memory_bytes").at("peak"), 2147483648);
  EXPECT_EQ(json.at("tries").at(0).at("ran"), false);
  EXPECT_EQ(json.at("tries").at(0).at("no_engine"), true);
  EXPECT_FALSE(json.at("tries").at(1).contains("no_engine"));
  found.search.batch = 0;
  EXPECT_NE(to_text(found).find("no batch runs a step, not even --bs 1"), std::string::npos);
}

}  // namespace
}  // namespace plumb
