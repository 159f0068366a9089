#include <gtest/gtest.h>

#include <cmath>

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

TEST(LargestOnALine, IsTheLastOneThatFits) {
  for (const std::int64_t last : {5, 6, 100, 85742, 123456789, 1999999999}) {
    const auto bytes = [](std::int64_t count) { return 1e9 + 6144.0 * static_cast<double>(count); };
    EXPECT_EQ(largest_on_a_line(bytes, bytes(last), {5, 2000000000}), last);
    EXPECT_EQ(largest_on_a_line(bytes, bytes(last + 1) - 1, {5, 2000000000}), last);
  }
}

TEST(LargestOnALine, HoldsForStairsAndBends) {
  const auto stairs = [](std::int64_t count) { return 256 * std::ceil(0.37 * static_cast<double>(count)); };
  const auto bend = [](std::int64_t count) {
    return static_cast<double>(count) * (count < 1000 ? 1 : 1 + 1e-3 * static_cast<double>(count - 1000));
  };
  for (const double memory : {300.0, 1e4, 1e6, 123456789.0}) {
    const std::int64_t on_stairs = largest_on_a_line(stairs, memory, {1, 1 << 30});
    EXPECT_LE(stairs(on_stairs), memory);
    EXPECT_GT(stairs(on_stairs + 1), memory);
    const std::int64_t on_bend = largest_on_a_line(bend, memory, {1, 1 << 30});
    EXPECT_LE(bend(on_bend), memory);
    EXPECT_GT(bend(on_bend + 1), memory);
  }
}

TEST(LargestOnALine, IsZeroWhenTheLeastIsTooMuchAndBoundedAbove) {
  const auto bytes = [](std::int64_t count) { return static_cast<double>(count); };
  EXPECT_EQ(largest_on_a_line(bytes, 9, {10, 20}), 0);
  EXPECT_EQ(largest_on_a_line(bytes, 10, {10, 20}), 10);
  EXPECT_EQ(largest_on_a_line(bytes, 20, {10, 20}), 20);
  EXPECT_EQ(largest_on_a_line(bytes, 1e9, {10, 20}), 20);
}

TEST(LargestOnALine, MakesFewPlans) {
  int plans = 0;
  const auto bytes = [&](std::int64_t count) {
    ++plans;
    return 256 * std::ceil(1e6 + 3.3 * static_cast<double>(count));
  };
  largest_on_a_line(bytes, 1e12, {1, (std::int64_t{1} << 31) - 1});
  EXPECT_LE(plans, 8);
}

}  // namespace
}  // namespace plumb
