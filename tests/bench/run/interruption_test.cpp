#include "bench/run/interruption.h"

#include <gtest/gtest.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

namespace plumb {
namespace {

constexpr std::chrono::seconds kLongPatience{600};

void wait_for_ever() {
  while (true) ::pause();
}

TEST(Interruption, NotesTheFirstSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
    Interruption interruption(kLongPatience);
    interruption.looks_begin();
    EXPECT_EQ(interruption.signal(), 0);
    ::raise(signal);
    EXPECT_EQ(interruption.signal(), signal);
    EXPECT_EQ(interruption.signal_unseen(), 0);
  }
}

TEST(Interruption, LeavesASignalThatNobodyLooksAtToAnotherThread) {
  Interruption interruption(kLongPatience);
  std::thread waiting([&] { interruption.wait(kLongPatience); });
  ::raise(SIGTERM);
  waiting.join();
  EXPECT_EQ(interruption.signal(), 0);
  EXPECT_EQ(interruption.signal_unseen(), SIGTERM);
}

// The kernel repeats it every second.
TEST(Interruption, TakesRepetitionsOfXcpuForOneSignal) {
  Interruption interruption(kLongPatience);
  interruption.looks_begin();
  for (int i = 0; i < 3; ++i) ::raise(SIGXCPU);
  EXPECT_EQ(interruption.signal(), SIGXCPU);
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
    Interruption interruption(kLongPatience);
    interruption.looks_begin();
    std::thread other([&] {
      interruption.wait(kLongPatience);
      ::_exit(exit_code_of(interruption.signal_unseen()));
    });
    write_to_nobody();
  };
  EXPECT_EXIT(shut_connection(), testing::ExitedWithCode(75), "");
}

TEST(Interruption, AShutConnectionBeforeItLivesEndsTheProcessWithASentence) {
  const auto shut_connection = [] {
    prepare_signals();
    write_to_nobody();
  };
  EXPECT_EXIT(shut_connection(), testing::ExitedWithCode(75),
              "the connection to another rank.* was closed; check");
}

// As `| head` does.
TEST(Interruption, AReaderOfStandardOutputThatIsGoneEndsNothing) {
  const auto reader_is_gone = [] {
    prepare_signals();
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(1);
    ::close(ends[0]);
    ::dup2(ends[1], STDOUT_FILENO);
    {
      Interruption interruption(kLongPatience);
      if (::write(STDOUT_FILENO, "x", 1) != -1 || errno != EPIPE || interruption.signal_unseen() != 0)
        ::_exit(2);
    }
    if (::write(STDOUT_FILENO, "x", 1) != -1 || errno != EPIPE) ::_exit(3);
    ::_exit(0);
  };
  EXPECT_EXIT(reader_is_gone(), testing::ExitedWithCode(0), "");
}

TEST(Interruption, PutsTheFormerHandlersBack) {
  struct sigaction before {
  }, after{};
  ::sigaction(SIGINT, nullptr, &before);
  {
    const Interruption interruption(kLongPatience);
    ::sigaction(SIGINT, nullptr, &after);
    EXPECT_NE(after.sa_handler, before.sa_handler);
  }
  ::sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  EXPECT_EXIT(::raise(SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

TEST(Interruption, LeavesIgnoredSignalsIgnored) {
  const auto before = ::signal(SIGINT, SIG_IGN);
  {
    const Interruption interruption(kLongPatience);
    ::raise(SIGINT);
    EXPECT_EQ(interruption.signal_unseen(), 0);
  }
  ::signal(SIGINT, before);
}

TEST(Interruption, ASecondSignalEndsTheProcess) {
  const auto two_signals = [] {
    const Interruption interruption(kLongPatience);
    ::raise(SIGINT);
    ::raise(SIGTERM);
  };
  EXPECT_EXIT(two_signals(), testing::ExitedWithCode(128 + SIGINT), "");
}

TEST(Interruption, ACrashAfterTheSignalEndsTheProcessAsTheSignalDoes) {
  const auto crash_after_signal = [] {
    const Interruption interruption(std::chrono::seconds(60));
    ::raise(SIGTERM);
    ::raise(SIGSEGV);
  };
  EXPECT_EXIT(crash_after_signal(), testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(Interruption, EndsAProcessThatNeverComesToLook) {
  const auto hangs = [] {
    const Interruption interruption(std::chrono::seconds(1));
    ::raise(SIGTERM);
    wait_for_ever();
  };
  EXPECT_EXIT(hangs(), testing::ExitedWithCode(128 + SIGTERM), "");
}

// Generated code may keep an address of the heap in the stack register.
TEST(Interruption, WritesNothingWhereTheInterruptedCodeHasItsStack) {
  constexpr std::size_t kBytes = 64 * 1024, kForKill = 2048;
  constexpr char kUntouched = 0x5a;
  std::vector<char> heap(kBytes, kUntouched);
  ucontext_t here{}, there{};
  ASSERT_EQ(::getcontext(&there), 0);
  there.uc_stack.ss_sp = heap.data();
  there.uc_stack.ss_size = heap.size();
  there.uc_link = &here;
  ::makecontext(
      &there, [] { ::kill(::getpid(), SIGTERM); }, 0);
  const Interruption interruption(kLongPatience);
  ::kill(::getpid(), 0);  // the first call binds the symbol, which takes a lot of stack
  ASSERT_EQ(::swapcontext(&here, &there), 0);
  EXPECT_EQ(interruption.signal_unseen(), SIGTERM);
  const auto touched = std::find_if(heap.begin(), heap.end(), [](char byte) { return byte != kUntouched; });
  EXPECT_LE(heap.end() - touched, static_cast<std::ptrdiff_t>(kForKill));
}

TEST(Interruption, AnAlarmOfSomebodyElseIsNone) {
  const Interruption interruption(kLongPatience);
  ::raise(SIGALRM);
  EXPECT_EQ(interruption.signal_unseen(), 0);
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
