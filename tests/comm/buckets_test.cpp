#include "comm/buckets.h"

#include <gtest/gtest.h>

#include <numeric>

namespace plumb {
namespace {

using Buckets = std::vector<std::vector<std::size_t>>;

TEST(Buckets, CloseWithTheGradientThatReachesTheLimit) {
  const BucketOptions options{.first_bucket_bytes = 10, .bucket_bytes = 20};
  EXPECT_EQ(assign_buckets({6, 4, 15, 4, 1, 30, 2}, options), (Buckets{{0, 1}, {2, 3, 4}, {5}, {6}}));
}

TEST(Buckets, OneShortOfTheLimitStaysOpen) {
  const BucketOptions options{.first_bucket_bytes = 10, .bucket_bytes = 10};
  EXPECT_EQ(assign_buckets({9, 1, 9}, options), (Buckets{{0, 1}, {2}}));
  EXPECT_EQ(assign_buckets({9, 9}, options), (Buckets{{0, 1}}));
}

TEST(Buckets, OnlyTheFirstHasTheSmallLimit) {
  const BucketOptions options{.first_bucket_bytes = 1, .bucket_bytes = 3};
  EXPECT_EQ(assign_buckets({1, 1, 1, 1, 1, 1, 1}, options), (Buckets{{0}, {1, 2, 3}, {4, 5, 6}}));
}

TEST(Buckets, NoGradientsMakeNoBucket) {
  EXPECT_TRUE(assign_buckets({}, {}).empty());
}

TEST(Buckets, HoldEveryGradientOnceInOrder) {
  std::vector<std::size_t> bytes(1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = (i * 7919) % 100000;
  for (std::size_t limit : {1u, 1000u, 123456u, 100000000u}) {
    std::vector<std::size_t> seen;
    for (const auto& bucket :
         assign_buckets(bytes, {.first_bucket_bytes = limit / 3, .bucket_bytes = limit})) {
      EXPECT_FALSE(bucket.empty());
      seen.insert(seen.end(), bucket.begin(), bucket.end());
    }
    std::vector<std::size_t> all(bytes.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    EXPECT_EQ(seen, all) << "limit " << limit;
  }
}

}  // namespace
}  // namespace plumb
