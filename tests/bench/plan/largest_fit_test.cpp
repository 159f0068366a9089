#include <gtest/gtest.h>

#include "bench/plan/step_plan.h"
#include "models/model_builder.h"

namespace plumb {
namespace {

TEST(LargestBatch, IsTheLastOneThatFits) {
  for (const std::int64_t last : {1, 2, 3, 7, 8, 9, 100, 12345, 1 << 19}) {
    const auto bytes = [](std::int64_t batch) { return 10.0 + 3.0 * static_cast<double>(batch); };
    EXPECT_EQ(largest_batch(bytes, bytes(last)), last);
    EXPECT_EQ(largest_batch(bytes, bytes(last) + 2.9), last);
  }
}

TEST(LargestBatch, IsZeroWhenOneImageIsTooMuchAndBoundedAbove) {
  EXPECT_EQ(largest_batch([](std::int64_t) { return 2.0; }, 1), 0);
  EXPECT_EQ(largest_batch([](std::int64_t) { return 0.0; }, 1), kMaxBatch);
}

TEST(LargestBatch, PlansAboutTwiceTheLogarithmOfItsAnswer) {
  int plans = 0;
  const auto bytes = [&](std::int64_t batch) { return ++plans, static_cast<double>(batch); };
  EXPECT_EQ(largest_batch(bytes, 200), 200);
  EXPECT_LE(plans, 16);
}

}  // namespace
}  // namespace plumb
