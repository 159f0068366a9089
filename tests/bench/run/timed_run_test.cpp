#include "bench/run/timed_run.h"

#include <gtest/gtest.h>

#include <numeric>

namespace plumb {
namespace {

TEST(StepTimer, IntervalsAreBackToBack) {
  StepTimer timer(4);
  for (double end : {0.5, 1.5, 3.5}) timer.lap(end);
  EXPECT_EQ(timer.step_seconds(), (std::vector<double>{0.5, 1, 2}));
  EXPECT_EQ(timer.end_seconds(), (std::vector<double>{0.5, 1.5, 3.5}));
  EXPECT_EQ(timer.iterations(), 3);
}

TEST(StepTimer, WindowBeginsAtTheEndOfTheWarmUp) {
  StepTimer timer(4);
  for (double end : {5, 6, 8, 9}) timer.lap(end);
  EXPECT_DOUBLE_EQ(timer.window_seconds(0), 9);
  EXPECT_DOUBLE_EQ(timer.window_seconds(1), 4);
  EXPECT_DOUBLE_EQ(timer.window_seconds(3), 1);
  EXPECT_DOUBLE_EQ(timer.window_seconds(4), 0);
}

TEST(StepTimer, WindowIsTheSumOfItsSamples) {
  StepTimer timer(100);
  for (int i = 0; i < 100; ++i) timer.lap(0.1 * (i + 1) + 0.001 * (i % 7));
  const double sum = std::accumulate(timer.step_seconds().begin() + 20, timer.step_seconds().end(), 0.0);
  EXPECT_NEAR(timer.window_seconds(20), sum, 1e-9);
}

TEST(StepTimer, KeepsSamplesInPlaceWithinItsCapacity) {
  StepTimer timer(50);
  timer.lap(1);
  const double* first = timer.step_seconds().data();
  for (int i = 1; i < 50; ++i) timer.lap(i + 1);
  EXPECT_EQ(timer.step_seconds().data(), first);
  for (int i = 50; i < 100; ++i) timer.lap(i + 1);
  EXPECT_EQ(timer.iterations(), 100);
}

}  // namespace
}  // namespace plumb
