#include "bench/run/interruption.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

namespace plumb {
namespace {

constexpr std::chrono::seconds kLongPatience{600};

void send(int signal) {
  ::kill(::getpid(), signal);
}

void wait_for_ever() {
  while (true) ::pause();
}

TEST(Interruption, NotesTheFirstSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
    Interruption interruption;
    interruption.begin(kLongPatience);
    interruption.looks_begin();
    EXPECT_EQ(interruption.signal(), 0);
    send(signal);
    interruption.wait(kLongPatience);
    EXPECT_EQ(interruption.signal(), signal);
    EXPECT_EQ(interruption.signal_unseen(), 0);
  }
}

TEST(Interruption, NotesASignalApartWhileTheRunDoesNotLook) {
  Interruption interruption;
  interruption.begin(kLongPatience);
  send(SIGTERM);
  interruption.wait(kLongPatience);
  EXPECT_EQ(interruption.signal(), 0);
  EXPECT_EQ(interruption.signal_unseen(), SIGTERM);
}

// Writes where nobody reads any more.
void write_to_nobody() {
  int ends[2];
  if (::pipe(ends) != 0) ::_exit(1);
  ::close(ends[0]);
  for (int i = 0; i < 2; ++i)
    if (::write(ends[1], "x", 1) != -1) ::_exit(2);
}

TEST(Interruption, AShutConnectionStopsTheWriterAndLeavesTheEndToAnotherThread) {
  const auto shut_connection = [] {
    Interruption interruption;
    interruption.begin(kLongPatience);
    interruption.looks_begin();
    std::thread other([&] {
      interruption.wait(kLongPatience);
      ::_exit(exit_code_of(interruption.signal_unseen()));
    });
    write_to_nobody();
  };
  EXPECT_EXIT(shut_connection(), testing::ExitedWithCode(75), "");
}

TEST(Interruption, AShutConnectionWithoutARunEndsTheProcessWithASentence) {
  const auto shut_connection = [] {
    const Interruption interruption;
    write_to_nobody();
  };
  EXPECT_EXIT(shut_connection(), testing::ExitedWithCode(75),
              "the connection to another rank.* was closed; check");
}

// As `| head` does.
TEST(Interruption, AReaderOfStandardOutputThatIsGoneEndsNothing) {
  const auto reader_is_gone = [] {
    Interruption interruption;
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(1);
    ::close(ends[0]);
    ::dup2(ends[1], STDOUT_FILENO);
    for (const std::chrono::seconds patience : {kLongPatience, std::chrono::seconds(0)}) {
      interruption.begin(patience);
      if (::write(STDOUT_FILENO, "x", 1) != -1 || errno != EPIPE || interruption.signal_unseen() != 0)
        ::_exit(2);
    }
    ::_exit(0);
  };
  EXPECT_EXIT(reader_is_gone(), testing::ExitedWithCode(0), "");
}

TEST(Interruption, WithoutARunASignalEndsTheProcessAsUsual) {
  const auto without_run = [](bool after_end) {
    std::optional<Interruption> interruption(std::in_place);
    interruption->begin(kLongPatience);
    interruption->end();
    if (after_end) interruption.reset();
    send(SIGTERM);
    wait_for_ever();
  };
  for (const bool after_end : {false, true})
    EXPECT_EXIT(without_run(after_end), testing::KilledBySignal(SIGTERM), "") << after_end;
}

TEST(Interruption, LeavesIgnoredSignalsIgnored) {
  const auto before = ::signal(SIGINT, SIG_IGN);
  {
    Interruption interruption;
    interruption.begin(kLongPatience);
    send(SIGINT);
    send(SIGTERM);
    interruption.wait(kLongPatience);
    EXPECT_EQ(interruption.signal_unseen(), SIGTERM);
  }
  ::signal(SIGINT, before);
}

// Notes SIGTERM, or `first`.
struct Interrupting {
  explicit Interrupting(std::chrono::seconds patience, int first = SIGTERM) {
    interruption.begin(patience);
    send(first);
    interruption.wait(kLongPatience);
  }

  Interruption interruption;
};

TEST(Interruption, ASecondSignalEndsTheProcess) {
  const auto two_signals = [] {
    const Interrupting run(kLongPatience, SIGINT);
    send(SIGTERM);
    wait_for_ever();
  };
  EXPECT_EXIT(two_signals(), testing::ExitedWithCode(128 + SIGINT), "");
}

// The kernel repeats it every second.
TEST(Interruption, TakesRepetitionsOfXcpuForOneSignal) {
  const auto repeated = [] {
    const Interrupting run(kLongPatience, SIGXCPU);
    for (int i = 0; i < 3; ++i) {
      send(SIGXCPU);
      ::usleep(10'000);
    }
    ::_exit(0);
  };
  EXPECT_EXIT(repeated(), testing::ExitedWithCode(0), "");
}

TEST(Interruption, ACrashAfterTheSignalEndsTheProcessAsTheSignalDoes) {
  const auto crash_after_signal = [] {
    const Interrupting run(kLongPatience);
    ::raise(SIGSEGV);
  };
  EXPECT_EXIT(crash_after_signal(), testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(Interruption, EndsAProcessThatNeverComesToLook) {
  const auto hangs = [] {
    const Interrupting run(std::chrono::seconds(1));
    wait_for_ever();
  };
  EXPECT_EXIT(hangs(), testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(Interrupted, SaysTheSignalAndHowFarTheRunWas) {
  const Interrupted counted(SIGINT, 12, 120), open(SIGTERM, 1, 0);
  EXPECT_STREQ(counted.what(), "interrupted by SIGINT, ended by signal 2 at iteration 12 of 120");
  EXPECT_STREQ(open.what(), "interrupted by SIGTERM, ended by signal 15 at iteration 1");
  EXPECT_EQ(static_cast<int>(counted.code()), 130);
  EXPECT_EQ(static_cast<int>(open.code()), 143);
  EXPECT_EQ(Interrupted(SIGPIPE, 3, 9).code(), ExitCode::peer_lost);
}

}  // namespace
}  // namespace plumb
