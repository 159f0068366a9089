#include "comm/watchdog/watchdog.h"

#include <chrono>
#include <string>
#include <thread>

#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

using WatchdogOfRanks = MpiTest;

// What a start-up error does that all ranks agree upon: rank 0 may still be printing it. A verdict would end
// this process.
TEST_F(WatchdogOfRanks, TakesAGoodbyeRightAfterTheStartForNoLoss) {
  if (job().size() == 1) GTEST_SKIP() << "one rank is not watched";
  const StatusBoard board;
  std::string told;
  {
    const Watchdog watchdog(job(), board,
                            {.limits = {.timeout_seconds = 30, .startup_timeout_seconds = 30},
                             .address = "127.0.0.1",
                             .tell = [&](const std::string& sentence) { told = sentence; }});
    ASSERT_EQ(watchdog.why_off(), "");
    if (job().rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  job().barrier();
  EXPECT_EQ(told, "");
}

}  // namespace
}  // namespace plumb
