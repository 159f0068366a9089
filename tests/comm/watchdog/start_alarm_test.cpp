#include "comm/watchdog/start_alarm.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

// As Open MPI's MPI_Init does where even less has room.
TEST(StartAlarmDeathTest, AnEndWithoutHandlersIsToldToo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const StatusBoard board;
  EXPECT_EXIT(
      {
        const StartAlarm alarm(board, kTellsOnStderr);
        ::_exit(1);
      },
      testing::ExitedWithCode(70), "MPI can't start; .* TMPDIR and /dev/shm have room");
  EXPECT_EXIT(
      {
        StartAlarm alarm(board, kTellsOnStderr);
        alarm.mpi_has_started();
        ::_exit(3);
      },
      testing::ExitedWithCode(3), "^$");
}

void touch_a_page_that_no_file_backs() {
  std::FILE* const file = std::tmpfile();
  void* const page = ::mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, ::fileno(file), 0);
  *static_cast<volatile char*>(page) = 1;
}

// As a page of Open MPI's shared memory on a full disk.
TEST(StartAlarmDeathTest, ABusErrorIsToldAndBecomes74) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const StatusBoard board;
  EXPECT_EXIT(
      {
        StartAlarm alarm(board, kTellsOnStderr);
        alarm.announce_through([](int exit_code) { std::fprintf(stderr, "announced: %d\n", exit_code); });
        touch_a_page_that_no_file_backs();
      },
      testing::ExitedWithCode(74),
      "^announced: 74\nrank 0 on .* no room left.* TMPDIR and /dev/shm have room\n$");
  EXPECT_EXIT(
      {
        const StartAlarm alarm(board, kTellsOnStderr);
        ::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "^$");
}

// Behind posix_spawn it has its variables for good: a shell would lose them for a moment at exec.
pid_t start_rank_1() {
  std::string sleep = "sleep", seconds = "60", rank = "OMPI_COMM_WORLD_RANK=1",
              size = "OMPI_COMM_WORLD_SIZE=2";
  char* const words[] = {sleep.data(), seconds.data(), nullptr};
  char* const variables[] = {rank.data(), size.data(), nullptr};
  pid_t pid = -1;
  return ::posix_spawn(&pid, "/bin/sleep", nullptr, nullptr, words, variables) == 0 ? pid : -1;
}

// This process is an mpirun that doesn't end rank 0 when rank 1 is gone. Ends as rank 0 does.
[[noreturn]] void run_as_mpirun_that_is_stuck(const StartAlarmOptions& options) {
  ::prctl(PR_SET_NAME, "mpirun");
  const pid_t rank_1 = start_rank_1();
  const pid_t rank_0 = ::fork();
  if (rank_0 == 0) {
    const StatusBoard board;
    const StartAlarm alarm(board, options);
    ::kill(rank_1, SIGKILL);
    for (;;) ::pause();
  }
  int status = -1;
  ::waitpid(rank_0, &status, 0);
  std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

TEST(StartAlarmDeathTest, NamesARankOfItsHostThatIsGone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  StartAlarmOptions options = kTellsOnStderr;
  options.lost_rank_seconds = 0.1;
  EXPECT_EXIT(run_as_mpirun_that_is_stuck(options), testing::ExitedWithCode(75),
              "^rank 1 on .* is gone, it was killed or crashed before ranks watch each other; [^\n]*\n$");
}

}  // namespace
}  // namespace plumb
