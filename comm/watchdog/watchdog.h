// Each rank has a thread that ends the process where MPI would wait for ever. It has a deadline over the
// phases of the status board and, once ranks are connected, tells rank 0's thread where its rank is. Rank 0
// decides (hang_detector.h), prints the sentence, and all end. The thread calls no function of MPI, NCCL or
// CUDA: those may be stuck.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "comm/job.h"
#include "comm/status_board.h"
#include "comm/watchdog/channel.h"
#include "comm/watchdog/hang_detector.h"
#include "comm/watchdog/launcher.h"

namespace plumb {

struct WatchdogOptions {
  WatchLimits limits;
  std::function<void(const std::string& sentence)> print;  // may be called by another thread
};

// On a verdict every rank calls before_exit and ends with the verdict's exit code, 75 for a lost rank. If
// rank 0 is lost, every rank prints that. A rank that ends so leaves its launcher 5 s to end, too
// (launcher.h).
class Watchdog {
 public:
  // Made before MPI_Init, destroyed after MPI_Finalize. `board` outlives it.
  Watchdog(const StatusBoard& board, WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Connects the ranks. Returns why no rank is watched, the same on all ranks, or nothing if all are
  // connected. `address`: of this host, where other hosts reach it. Sends messages of the job.
  std::string connect(const Job& job, const std::string& address);
  // This rank ends in good order. To be called before MPI_Finalize.
  void disconnect();

  // Called once on each rank, by a thread of its own, between the verdict and the end of the process, which
  // waits 5 s for it. The computing thread may be stuck anywhere, and hold any lock, or go on computing. Also
  // replaces the function that was set before; returns when that one does not run.
  void set_before_exit(std::function<void(const std::string& sentence, int exit_code)> before_exit);

  // This rank ends the job itself, with this code: no rank is called lost from now on. Returns when all know,
  // after 2 s at most. Never returns if there is a verdict; a lost peer (75) waits 2 s for one.
  void announce_end(int exit_code);

 private:
  using Lock = std::unique_lock<std::mutex>;

  // Main thread.
  std::string gather_identities(const Job& job, Listener& listener, const std::string& address);
  std::string why_not_connected(const Channel& channel) const;
  void wake();
  [[noreturn]] void wait_for_the_end(Lock& lock);

  // Watching thread.
  void run(const std::stop_token& stop);
  void exchange_messages();
  void look_at_deadline();
  void look_at_launcher();
  void look_at_ranks();
  void begin_to_watch();
  void send_heartbeat();
  void received(int from, const WatchMessage& message);
  void closed(int from);
  void take_leave(int from, int exit_code);
  void pass_on_own_end();
  void leave(int exit_code);
  [[noreturn]] void condemn(const Verdict& verdict, bool prints);
  [[noreturn]] void end(const std::string& sentence, int exit_code);
  void prepare_end(const std::string& sentence, int exit_code, bool prints);
  [[noreturn]] void finish(int exit_code) const;
  // A thread of its own.
  void call_before_exit(const std::string& sentence, int exit_code);

  const StatusBoard& board_;
  const WatchdogOptions options_;
  const std::optional<pid_t> launcher_ = parent_launcher();
  const int launched_rank_;  // known before MPI is
  const UniqueFd wake_;

  // Set before the watching thread gets the channel.
  int rank_ = 0;
  std::vector<RankIdentity> identities_;
  SocketAddress rank_0_at_;

  // The watching thread's.
  double watched_seconds_ = 0;  // a clock that stands still while this process is stopped
  std::int64_t phase_since_ns_ = 0;
  double phase_began_ = 0;
  std::optional<double> launcher_gone_at_;
  std::unique_ptr<Channel> channel_;
  std::optional<HangDetector> detector_;  // of all ranks on rank 0, elsewhere of rank 0 alone
  double sent_at_ = 0;
  RankSummary sent_;                      // the last heartbeat
  std::map<int, RankSummary> last_sent_;  // of other ranks
  bool is_leaving_ = false;               // this rank ends the job itself
  std::set<int> left_;                    // in good order
  std::optional<Verdict> found_, told_;   // by this rank; by rank 0, or on rank 0 by another one
  double found_at_ = 0;

  // Shared.
  mutable std::mutex mutex_;
  std::mutex before_exit_mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Channel> new_channel_;
  bool speaks_ = false, watches_ = false, announced_ = false;
  std::optional<int> own_end_;  // the code announced, until it is passed on
  bool condemned_ = false, settled_ = false, called_ = false;
  std::function<void(const std::string&, int)> before_exit_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace plumb
