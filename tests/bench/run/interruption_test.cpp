#include "bench/run/interruption.h"

#include <gtest/gtest.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace plumb {
namespace {

constexpr std::chrono::seconds kLongPatience{600};

void wait_for_ever() {
  while (true) ::pause();
}

TEST(Interruption, NotesTheFirstSignal) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Interruption interruption(kLongPatience);
    EXPECT_EQ(interruption.signal(), 0);
    ::raise(signal);
    EXPECT_EQ(interruption.signal(), signal);
    interruption.end();
    EXPECT_EQ(interruption.signal(), signal);
  }
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
    EXPECT_EQ(interruption.signal(), 0);
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
  EXPECT_EQ(interruption.signal(), SIGTERM);
  const auto touched = std::find_if(heap.begin(), heap.end(), [](char byte) { return byte != kUntouched; });
  EXPECT_LE(heap.end() - touched, static_cast<std::ptrdiff_t>(kForKill));
}

TEST(Interruption, AnAlarmOfSomebodyElseIsNone) {
  const Interruption interruption(kLongPatience);
  ::raise(SIGALRM);
  EXPECT_EQ(interruption.signal(), 0);
}

TEST(Interrupted, SaysTheSignalAndHowFarTheRunWas) {
  const Interrupted counted(SIGINT, 12, 120), open(SIGTERM, 1, 0);
  EXPECT_STREQ(counted.what(), "interrupted by SIGINT after 12 of 120 iterations");
  EXPECT_STREQ(open.what(), "interrupted by SIGTERM after 1 iteration");
  EXPECT_EQ(static_cast<int>(counted.code()), 130);
  EXPECT_EQ(static_cast<int>(open.code()), 143);
}

}  // namespace
}  // namespace plumb
