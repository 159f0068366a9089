#include "comm/watchdog/start_alarm.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace plumb {
namespace {

const StartAlarmOptions kTellsOnStderr{
    .tell = [](const std::string& sentence) { std::fprintf(stderr, "%s\n", sentence.c_str()); }};

// As Open MPI's MPI_Init does where TMPDIR is full.
TEST(StartAlarmDeathTest, AnExitInsideMpiInitIsToldAndBecomes70) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const StatusBoard board;
  EXPECT_EXIT(
      {
        const StartAlarm alarm(board, kTellsOnStderr);
        std::exit(1);
      },
      testing::ExitedWithCode(70), "MPI can't start; .* TMPDIR and /dev/shm have room");
  EXPECT_EXIT(
      {
        StartAlarm alarm(board, kTellsOnStderr);
        alarm.mpi_has_started();
        std::exit(3);
      },
      testing::ExitedWithCode(3), "^$");
}

}  // namespace
}  // namespace plumb
