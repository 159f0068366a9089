// SIGINT and SIGTERM end a run between two instructions, so that it can show what it measured until then.
#pragma once

#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"

namespace plumb {

// The Error of a run that a signal ended: its exit code is 128 + signal, as if the signal had ended it.
class Interrupted : public Error {
 public:
  // "interrupted by SIGINT after 12 of 120 iterations"; `asked` 0: how many were to come wasn't settled.
  Interrupted(int signal, std::int64_t ended, std::int64_t asked);
};

// While it lives, the first SIGINT or SIGTERM is only noted, for signal(). A second one ends the process at
// once with 128 + signal; so does `patience` after the first one, whatever the process waits for then.
// Signals that were ignored before stay ignored. One at a time: handlers belong to the process. To be made by
// the thread that computes: the handler has a stack of its own there. On the interrupted code's stack its
// frame was once found across heap blocks, which generated code explains that keeps another address in the
// stack register.
class Interruption {
 public:
  explicit Interruption(std::chrono::seconds patience);
  ~Interruption() { end(); }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // The signal that came in; 0: none.
  int signal() const { return signal_.load(std::memory_order_relaxed); }
  // Puts the former handlers back. signal() doesn't change from now on.
  void end();

 private:
  static void handle(int signal);
  void take(int signal);

  static_assert(std::atomic<int>::is_always_lock_free && std::atomic<Interruption*>::is_always_lock_free);
  // POSIX passes a handler nothing but the number. The handler takes the pointer while it works, and so does
  // end() for good: neither uses an Interruption that is gone.
  static std::atomic<Interruption*> current_;

  std::atomic<int> signal_{0};
  unsigned patience_seconds_;
  std::vector<char> stack_;
  stack_t stack_before_{};
  std::array<std::pair<int, struct sigaction>, 3> before_;
  bool ended_ = false;
};

}  // namespace plumb
