// Each rank has a thread that ends the process where MPI would wait for ever: by a deadline over the phases
// of the status board, and by heartbeats from which rank 0 decides (hang_detector.h). The thread calls no
// function of MPI, NCCL or CUDA: those may be stuck.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/job.h"
#include "comm/launcher.h"
#include "comm/status_board.h"
#include "comm/watchdog/channel.h"
#include "comm/watchdog/hang_detector.h"

namespace plumb {

struct WatchdogOptions {
  WatchLimits limits;
  // Both functions may be called by another thread.
  std::function<void(const std::string& sentence)> print;
  // Called once, on rank 0, if the job has not sent its first message after `seconds`. May be empty.
  std::function<void(double seconds)> messages_are_late = {};
};

// On a verdict every rank calls before_exit and ends with the verdict's exit code, 75 for a lost rank. If
// rank 0 is lost, every rank prints that. A rank that ends so leaves its launcher 5 s to end, too
// (launcher.h). A thread that calls a method then waits for the end of the process.
class Watchdog {
 public:
  // Made before MPI_Init, destroyed after MPI_Finalize. `board` outlives it.
  Watchdog(const StatusBoard& board, WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Connects the ranks. Returns on rank 0 why no rank is watched, or nothing if all are connected. `address`:
  // of this host, where other hosts reach it. Sends messages of the job.
  std::string connect(const Job& job, const std::string& address);
  // This rank ends in good order. To be called before MPI_Finalize.
  void disconnect();

  // Called once on each rank, by a thread of its own, between the verdict and the end of the process, which
  // waits 5 s for it. The computing thread may be stuck anywhere, and hold any lock, or go on computing.
  void set_before_exit(std::function<void(const std::string& sentence, int exit_code)> before_exit);

  // This rank ends the job itself: no rank is called lost from now on. Returns when all know, after 2 s at
  // most. Never returns if there is a verdict; a lost peer (75) waits 2 s for one.
  void announce_end(int exit_code);

 private:
  using Lock = std::unique_lock<std::mutex>;

  // A verdict to end by, once it is due. It is printed here unless another rank prints it.
  struct Found {
    Verdict verdict;
    double due = 0;
    bool prints = true;
  };

  void wake();

  // The watching thread's; it has the lock.
  void run(const std::stop_token& stop);
  void exchange_messages(Lock& lock);
  void look_at_phase();
  void look_at_launcher();
  void look_at_ranks();
  void received(int from, const Verdict& message);
  void closed(int from);
  void leave();
  void settle();
  Verdict of_this_rank(Verdict::Kind kind, int exit_code) const;
  void find(const Verdict& verdict, double grace_seconds, bool prints = true);
  [[noreturn]] void end_by(const Found& found);
  void call_before_exit(const std::string& sentence, int exit_code) const;

  const StatusBoard& board_;
  WatchdogOptions options_;
  const std::optional<pid_t> launcher_ = parent_launcher();
  const UniqueFd wake_;

  std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  int rank_;
  std::vector<RankIdentity> identities_;
  Channel channel_;
  bool watches_ranks_ = false;
  std::optional<HangDetector> detector_;   // of all ranks on rank 0, elsewhere of rank 0 alone
  double watched_seconds_ = 0;             // a clock that stands still while this process is stopped
  double phase_since_ = 0;                 // RunStatus::phase_since at the last look
  double phase_began_ = 0, sent_at_ = -1;  // the first heartbeat is sent at once
  RankSummary sent_;                       // the last one
  std::optional<Found> found_;
  std::optional<int> own_end_;  // the code that was announced
  double leaves_at_ = 0;
  bool leaves_ = false, settled_ = false;  // this rank has told the others that it ends; they know
  std::function<void(const std::string&, int)> before_exit_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace plumb
