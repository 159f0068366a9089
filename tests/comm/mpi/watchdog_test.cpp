#include "comm/watchdog/watchdog.h"

#include <mpi.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/comm/mpi/mpi_test.h"

namespace {
bool gatherings_fail = false;
}

// In front of MPI's own, as profilers do it.
extern "C" int MPI_Allgather(const void* from, int sent, MPI_Datatype of_sent, void* to, int received,
                             MPI_Datatype of_received, MPI_Comm comm) {
  if (gatherings_fail) return MPI_ERR_OTHER;
  return PMPI_Allgather(from, sent, of_sent, to, received, of_received, comm);
}

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
    Watchdog watchdog(board, {.limits = {.timeout_seconds = 30, .startup_timeout_seconds = 30},
                              .print = [&](const std::string& sentence) { told = sentence; }});
    ASSERT_EQ(watchdog.connect(job(), "127.0.0.1"), "");
    if (job().rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    watchdog.disconnect();
  }
  job().barrier();
  EXPECT_EQ(told, "");
}

// As where a rank is lost meanwhile: the thread must end before what it uses.
TEST_F(WatchdogOfRanks, EndsItsThreadWhereAMessageOfTheStartFails) {
  if (job().size() == 1) GTEST_SKIP() << "one rank is not watched";
  const StatusBoard board;
  gatherings_fail = true;
  {
    Watchdog watchdog(board, {.limits = {}, .print = [](const std::string&) {}});
    EXPECT_THROW(watchdog.connect(job(), "127.0.0.1"), Error);
  }
  gatherings_fail = false;
  job().barrier();
}

}  // namespace
}  // namespace plumb
