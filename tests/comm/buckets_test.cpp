#include "models/buckets.h"

#include <gtest/gtest.h>

#include <numeric>

namespace plumb {
namespace {

using Buckets = std::vector<std::vector<std::size_t>>;

std::size_t bytes_of(const std::vector<std::size_t>& bucket, const std::vector<std::size_t>& gradient_bytes) {
  std::size_t bytes = 0;
  for (std::size_t gradient : bucket) bytes += gradient_bytes[gradient];
  return bytes;
}

TEST(Buckets, AreFilledFromTheLastGradientOn) {
  const BucketOptions options{.last_bucket_bytes = 10, .bucket_bytes = 40};
  EXPECT_EQ(assign_buckets({5, 30, 10, 1, 6, 4}, options), (Buckets{{0, 1}, {2, 3}, {4, 5}}));
}

TEST(Buckets, GrowFromTheLastOneUpToTheLargest) {
  const BucketOptions options{.last_bucket_bytes = 1, .bucket_bytes = 25};
  const std::vector<std::size_t> gradients(60, 1);
  std::vector<std::size_t> sizes;
  for (const auto& bucket : assign_buckets(gradients, options)) sizes.push_back(bucket.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{14, 25, 16, 4, 1}));
}

TEST(Buckets, TakeNoMoreThanTheirLimitAndThatInFull) {
  const BucketOptions options{.last_bucket_bytes = 10, .bucket_bytes = 10};
  EXPECT_EQ(assign_buckets({9, 1, 9}, options), (Buckets{{0}, {1, 2}}));
  EXPECT_EQ(assign_buckets({9, 2, 9}, options), (Buckets{{0}, {1}, {2}}));
}

TEST(Buckets, AGradientBeyondTheLimitIsAlone) {
  const BucketOptions options{.last_bucket_bytes = 10, .bucket_bytes = 20};
  EXPECT_EQ(assign_buckets({1, 100, 1}, options), (Buckets{{0}, {1}, {2}}));
  EXPECT_EQ(assign_buckets({1, 1, 100}, options), (Buckets{{0, 1}, {2}}));
}

TEST(Buckets, NoGradientsMakeNoBucket) {
  EXPECT_TRUE(assign_buckets({}, {}).empty());
}

TEST(BucketLimit, NeverShrinksFromTheLastBucketToTheFirst) {
  const BucketOptions options;
  EXPECT_EQ(bucket_limit(0, options), 1u << 20);
  EXPECT_EQ(bucket_limit(1, options), 4u << 20);
  EXPECT_EQ(bucket_limit(2, options), 16u << 20);
  EXPECT_EQ(bucket_limit(3, options), 25u << 20);
  EXPECT_EQ(bucket_limit(1000, options), 25u << 20);
}

TEST(BucketLimit, IsNeverBeyondTheLargest) {
  EXPECT_EQ(bucket_limit(0, {.bucket_bytes = 1000}), 1000u);
  const std::size_t most = ~std::size_t{0};
  EXPECT_EQ(bucket_limit(1000, {.last_bucket_bytes = 3, .bucket_bytes = most}), most);
}

// For any sizes: every gradient once and in order, only a single gradient may exceed a bucket's limit, and no
// bucket is closed while the next gradient still fits.
TEST(Buckets, HoldEveryGradientOnceInOrderWithinTheLimits) {
  std::vector<std::size_t> gradients(1000);
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = (i * 7919) % 100000;
  for (std::size_t most : {1u, 1000u, 123456u, 100000000u}) {
    const BucketOptions options{.last_bucket_bytes = most / 3, .bucket_bytes = most};
    const Buckets buckets = assign_buckets(gradients, options);
    std::vector<std::size_t> seen;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const std::size_t limit = bucket_limit(buckets.size() - 1 - i, options);
      const std::size_t bytes = bytes_of(buckets[i], gradients);
      EXPECT_FALSE(buckets[i].empty());
      EXPECT_TRUE(bytes <= limit || buckets[i].size() == 1) << "bucket " << i << " of limit " << most;
      if (i > 0) {
        EXPECT_GT(bytes + gradients[buckets[i - 1].back()], limit) << "bucket " << i << " of limit " << most;
      }
      seen.insert(seen.end(), buckets[i].begin(), buckets[i].end());
    }
    std::vector<std::size_t> all(gradients.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    EXPECT_EQ(seen, all) << "limit " << most;
  }
}

}  // namespace
}  // namespace plumb
