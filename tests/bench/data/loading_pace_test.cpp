#include "bench/data/loading_pace.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

LoadingPace paced(const PaceLimits& limits, double image_seconds, double step_seconds) {
  LoadingPace pace(limits);
  for (int i = 0; i < 500; ++i) pace.image_took(image_seconds), pace.step_took(step_seconds);
  return pace;
}

TEST(LoadingPace, AllWorkersLoadUntilTimesAreKnown) {
  EXPECT_EQ(LoadingPace({.batch = 8, .workers = 12, .as_needed = true, .ahead = 4}).workers(), 12);
}

TEST(LoadingPace, WorkersFollowTheRateOfTraining) {
  const PaceLimits limits{.batch = 100, .workers = 12, .as_needed = true, .ahead = 4};
  EXPECT_EQ(paced(limits, 0.001, 0.05).workers(), 3);  // 2 just keep up
  EXPECT_EQ(paced(limits, 0.001, 5).workers(), 1);
  EXPECT_EQ(paced(limits, 0.001, 0.0001).workers(), 12);
  EXPECT_EQ(paced({.batch = 100, .workers = 12, .ahead = 4}, 0.001, 5).workers(), 12);
}

TEST(LoadingPace, BatchesAheadHideTheSlowestImage) {
  const PaceLimits limits{.batch = 100, .workers = 2, .as_needed = true, .ahead = 6};
  LoadingPace pace = paced(limits, 0.001, 0.05);
  EXPECT_EQ(pace.ahead(), 2u);
  pace.image_took(0.12);
  EXPECT_EQ(pace.ahead(), 4u);
  pace.image_took(60);
  EXPECT_EQ(pace.ahead(), 6u);
  for (int i = 0; i < 20000; ++i) pace.image_took(0.001);  // long ago
  EXPECT_EQ(pace.ahead(), 2u);
}

TEST(LoadingPace, SmallBatchesGiveEveryWorkerAnImage) {
  EXPECT_EQ(paced({.batch = 2, .workers = 7, .ahead = 9}, 0.001, 5).ahead(), 5u);
}

}  // namespace
}  // namespace plumb
