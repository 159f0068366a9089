// Signals end a run between two instructions, so that it can show what it measured until then.
#pragma once

#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <semaphore>
#include <string_view>
#include <thread>

#include "base/error.h"

namespace plumb {

// The Error of a run that a signal ended: its exit code is exit_code_of(signal).
class Interrupted : public Error {
 public:
  // "interrupted by SIGINT, ended by signal 2 at iteration 12 of 120"; `asked` 0: not settled.
  Interrupted(int signal, std::int64_t ended, std::int64_t asked);
};

// Async-signal-safe: writes the text to stderr as it is, whatever lock a stuck thread holds. Drops it if the
// reader is gone or doesn't read within a second.
void say_at_once(std::string_view text);

// 128 + signal, as if the signal had ended the process; 75 for SIGPIPE, as a peer is lost.
int exit_code_of(int signal);

// Handles signals while it lives. Its own thread waits for SIGINT, SIGTERM, SIGHUP and SIGXCPU, except those
// that were ignored before; all other threads block them. Make one at a time, before the process has threads.
//
// Outside a run these signals end the process as usual. Between begin() and end() the first one is only
// noted: for signal() between looks_begin() and looks_end(), otherwise for signal_unseen(). A second signal,
// a crash, or the end of `patience` then ends the process with exit_code_of the first. (SIGXCPU may repeat:
// the kernel sends it every second.)
//
// SIGPIPE is ignored if the reader of stdout or stderr is gone. Otherwise the thread that wrote to the closed
// connection stops, because Open MPI would print the same line some 70,000 times a second. In a run the
// signal is noted for signal_unseen(); outside it the process prints a sentence and ends with 75. SIGBUS
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
  std::atomic<std::int64_t> patience_seconds_{0};  // 0: outside begin() and end()
  std::counting_semaphore<> told_{0};
  sigset_t watched_;
  std::thread thread_;
};

}  // namespace plumb
