// Signals end a run between two instructions, so that it can show what it measured until then.
#pragma once

#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <semaphore>
#include <thread>

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

// What signals do while it lives. A thread of its own waits for SIGINT, SIGTERM, SIGHUP and SIGXCPU, unless
// they were ignored before; all other threads block them. One at a time, made before the process has threads.
//
// Without a run they end the process as usual. Between begin() and end() the first is only noted: for
// signal() between looks_begin() and looks_end(), else for signal_unseen(). Another one, a crash, or
// `patience` after the first, ends the process at once with exit_code_of the first. (The kernel repeats
// SIGXCPU every second, which does not count.)
//
// SIGPIPE does not matter if the reader of stdout or stderr is gone. Else the thread that wrote to the shut
// connection stands still: Open MPI would otherwise print the same line some 70,000 times a second. In a run
// it is noted for signal_unseen(); without one a sentence is printed and the process ends with 75. SIGBUS
// prints a sentence and ends the process with 74. A write beyond `ulimit -f` fails like one on a full disk.
class Interruption {
 public:
  Interruption();
  ~Interruption();  // signals do what they did before, except SIGPIPE, SIGBUS and SIGXFSZ
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  void begin(std::chrono::seconds patience) { patience_seconds_ = patience.count(); }
  void end() { patience_seconds_ = 0; }

  // From now on, or no longer, the thread that computes looks at signal() often, and ends the run by it.
  void looks_begin() { looks_ = true; }
  void looks_end() { looks_ = false; }

  // The signal that came in between the two; 0: none.
  int signal() const { return looked_at_.load(std::memory_order_relaxed); }
  // The signal that nobody else looks at; 0: none.
  int signal_unseen() const { return unseen_; }
  // Waits at most so long for any signal, or wake().
  void wait(std::chrono::milliseconds longest) { (void)told_.try_acquire_for(longest); }
  void wake() { told_.release(); }

 private:
  void watch();

  std::atomic<int> looked_at_{0}, unseen_{0};
  std::atomic<bool> looks_{false}, is_over_{false};
  std::atomic<std::int64_t> patience_seconds_{0};  // 0: there is no run
  std::counting_semaphore<> told_{0};
  sigset_t watched_;
  std::thread thread_;
};

}  // namespace plumb
