// Signals end a run between two instructions, so that it can show what it measured until then.
#pragma once

#include <semaphore.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"

namespace plumb {

// The Error of a run that a signal ended: its exit code is exit_code_of(signal).
class Interrupted : public Error {
 public:
  // "interrupted by SIGINT, ended by signal 2 at iteration 12 of 120"; `asked` 0: not settled.
  Interrupted(int signal, std::int64_t ended, std::int64_t asked);
};

// 128 + signal, as if the signal had ended the process; 75 for SIGPIPE, as a peer is lost.
int exit_code_of(int signal);

// Before a job begins: a write beyond `ulimit -f` fails like one on a full disk. SIGBUS prints a
// sentence and ends the process with 74. SIGPIPE does the same with 75, unless an Interruption lives or the
// reader of stdout or stderr is gone.
void prepare_signals();

// While it lives, the first SIGINT, SIGTERM, SIGHUP or SIGXCPU is only noted: for signal() between
// looks_begin() and looks_end(), else for signal_unseen(). Another one, or `patience` after the first, ends
// the process at once with exit_code_of the first. (The kernel repeats SIGXCPU every second, which does not
// count.) SIGPIPE is noted for signal_unseen(), and the thread that wrote to the shut connection stands
// still: Open MPI would otherwise print the same line some 70,000 times a second. A reader of stdout or
// stderr that is gone does not matter. Signals that were ignored before stay ignored, except SIGPIPE. One at
// a time. To be made by the thread that computes: the handler has a stack of its own there, as generated code
// may keep another address in the stack register.
class Interruption {
 public:
  explicit Interruption(std::chrono::seconds patience);
  ~Interruption();  // puts the former handlers back
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // From now on, or no longer, the thread that computes looks at signal() often, and ends the run by it.
  void looks_begin() { looks_.store(true); }
  void looks_end() { looks_.store(false); }

  // The signal that came in between the two; 0: none.
  int signal() const { return seen(true); }
  // The signal that nobody else looks at; 0: none.
  int signal_unseen() const { return seen(false); }
  // Waits at most so long for any signal, or wake(); on a thread that gets no signals itself.
  void wait(std::chrono::milliseconds longest);
  void wake() { ::sem_post(&told_); }

 private:
  static constexpr int kLooked = 256;  // in taken_, beside the signal: it came while the run looked

  static void handle(int signal);
  void take(int signal);
  int seen(bool looked) const {
    const int taken = taken_.load(std::memory_order_relaxed);
    return ((taken & kLooked) != 0) == looked ? taken & ~kLooked : 0;
  }

  static_assert(std::atomic<int>::is_always_lock_free && std::atomic<Interruption*>::is_always_lock_free);
  // POSIX passes a handler nothing but the number. The handler takes the pointer while it works, and so does
  // the destructor for good: neither uses an Interruption that is gone.
  static std::atomic<Interruption*> current_;

  std::atomic<int> taken_{0};
  std::atomic<bool> looks_{false};
  sem_t told_;
  unsigned patience_seconds_;
  std::vector<char> stack_;
  stack_t stack_before_{};
  std::array<std::pair<int, struct sigaction>, 6> before_;
};

}  // namespace plumb
