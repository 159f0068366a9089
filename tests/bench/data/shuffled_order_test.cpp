#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "bench/data/image_loader.h"

namespace plumb {
namespace {

TEST(ShuffledOrder, EveryEpochHoldsEveryImageOnce) {
  for (const std::uint64_t count : {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000}) {
    const ShuffledOrder order(7, count);
    for (const std::uint64_t epoch : {0, 1, 2}) {
      std::vector<bool> seen(count);
      for (std::uint64_t position = 0; position < count; ++position) {
        const std::uint64_t image = order.at(epoch, position);
        ASSERT_LT(image, count);
        ASSERT_FALSE(seen[image]) << image << " comes twice in epoch " << epoch << " of " << count;
        seen[image] = true;
      }
    }
  }
}

TEST(ShuffledOrder, DiffersBetweenEpochsAndSeeds) {
  constexpr std::uint64_t kCount = 1000;
  const ShuffledOrder order(7, kCount), same(7, kCount), other(8, kCount);
  int like_next_epoch = 0, like_other_seed = 0, unmoved = 0;
  for (std::uint64_t position = 0; position < kCount; ++position) {
    EXPECT_EQ(order.at(3, position), same.at(3, position));
    like_next_epoch += order.at(3, position) == order.at(4, position);
    like_other_seed += order.at(3, position) == other.at(3, position);
    unmoved += order.at(3, position) == position;
  }
  EXPECT_LT(like_next_epoch, 10);  // 1 is expected
  EXPECT_LT(like_other_seed, 10);
  EXPECT_LT(unmoved, 10);
}

TEST(ShuffledOrder, EveryPlaceIsReachedAboutEquallyOften) {
  constexpr std::uint64_t kCount = 10, kEpochs = 20000;
  const ShuffledOrder order(1, kCount);
  std::array<std::array<int, kCount>, kCount> hits{};
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch)
    for (std::uint64_t position = 0; position < kCount; ++position)
      ++hits[position][order.at(epoch, position)];
  for (const auto& row : hits)
    for (const int hit : row) EXPECT_NEAR(hit, 2000, 250);  // standard deviation 42
}

}  // namespace
}  // namespace plumb
