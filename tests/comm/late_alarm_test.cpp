#include "comm/late_alarm.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace plumb {
namespace {

TEST(LateAlarm, TellsOnceOfWorkThatDoesNotEnd) {
  std::promise<void> told;
  std::atomic<int> times = 0;
  {
    const LateAlarm alarm(std::chrono::milliseconds(1), [&] {
      ++times;
      told.set_value();
    });
    told.get_future().wait();
  }
  EXPECT_EQ(times, 1);
}

TEST(LateAlarm, IsSilentAboutWorkThatEndsInTime) {
  bool told = false;
  {
    const LateAlarm alarm(std::chrono::hours(1), [&] { told = true; });
  }
  EXPECT_FALSE(told);
}

TEST(LateAlarm, HasNothingToTellWithoutAFunction) {
  EXPECT_NO_THROW(LateAlarm(std::chrono::milliseconds(0), {}));
}

}  // namespace
}  // namespace plumb
