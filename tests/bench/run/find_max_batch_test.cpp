#include <gtest/gtest.h>

#include <set>

#include "bench/run/tasks.h"

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
