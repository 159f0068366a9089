#include "kernels/cuda/memory_pool.h"

#include <gtest/gtest.h>

namespace plumb::cuda {
namespace {

TEST(MemoryPool, FillsGapsAndSaysWhenItIsFull) {
  MemoryPool pool(4096);
  std::byte* const first = pool.allocate(1000);
  ASSERT_TRUE(first);
  EXPECT_EQ(pool.allocate(1), first + 1024);
  EXPECT_EQ(pool.allocate(2500), first + 1536);
  EXPECT_EQ(pool.allocate(100), nullptr);
  pool.free(first);
  EXPECT_EQ(pool.allocate(1025), nullptr);
  EXPECT_EQ(pool.allocate(1024), first);
  EXPECT_EQ(pool.allocate(std::size_t{1} << 62), nullptr);
}

TEST(MemoryPool, APieceWithoutBytesIsAlsoItsOwnersAlone) {
  MemoryPool pool(2048);
  std::byte* const first = pool.allocate(1000);
  EXPECT_EQ(pool.allocate(0), first + 1024);
  EXPECT_EQ(pool.allocate(0), first + 1536);
  EXPECT_EQ(pool.allocate(0), nullptr);
  pool.free(first);
  EXPECT_EQ(pool.allocate(1024), first);
}

TEST(PageLockedCache, HandsOutAgainWhatWasFreed) {
  PageLockedCache cache;
  std::byte *const first = cache.allocate(1000), *const second = cache.allocate(1000);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first, second);
  cache.free(first);
  EXPECT_NE(cache.allocate(3000), first) << "it is too small";
  EXPECT_EQ(cache.allocate(600), first);
  EXPECT_NE(cache.allocate(600), first);
  EXPECT_EQ(cache.allocate(std::size_t{1} << 62), nullptr);
}

}  // namespace
}  // namespace plumb::cuda
