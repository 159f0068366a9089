// Ranks watch each other beside MPI: a thread per rank with a connection to rank 0's, which judges
// (verdict.h) and tells all. When rank 0 is lost the lowest rank that is left tells. Calls no function of
// MPI, NCCL or CUDA from its thread: those may be stuck.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "comm/job.h"
#include "comm/status_board.h"
#include "comm/watchdog/endpoint.h"
#include "comm/watchdog/launcher.h"
#include "comm/watchdog/succession.h"
#include "comm/watchdog/verdict.h"

namespace plumb {

struct WatchdogOptions {
  WatchLimits limits;
  std::string address;  // of this host, where other hosts reach it
  std::function<void(const std::string& sentence)> tell;
};

struct FailedRank {
  int rank = 0;
  std::string host;
  int exit_code = 0;
};

// On a verdict every rank calls before_exit, fences its launcher (launcher.h) and ends with 75; one rank
// tells.
class Watchdog {
 public:
  // Every rank of a job of several makes one: gathers addresses and spreads the token by the job's messages.
  // `board` outlives it.
  Watchdog(const Job& job, const StatusBoard& board, WatchdogOptions options);
  // Says goodbye. To be called before MPI_Finalize.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Waits until every rank is connected to rank 0; from then on they are watched. By the job's messages.
  void connect(const Job& job);
  // After connect(): empty if all ranks are connected; else why no rank is watched, the same on all ranks.
  const std::string& why_off() const { return why_off_; }

  // Called once on each rank, by a thread of its own, between the verdict and the end of the process, which
  // waits 5 s for it. The computing thread may be stuck anywhere, and hold any lock, or go on computing. Also
  // replaces one that was set before; returns when none of those runs.
  void set_before_exit(std::function<void(const Verdict&, const std::string& sentence)> before_exit);

  // This rank ends the job by itself with this code: all ranks are told to raise no alarm. Returns when they
  // are, after a second at most. Never returns if there is a verdict; a lost peer (75) waits two seconds for
  // one.
  void stand_down(int exit_code);
  // The same from another thread than the job's, without waiting for a verdict; also never returns if another
  // rank has stood down.
  void stand_down_at_once(int exit_code);
  // On rank 0: who stood down before rank 0 did, and not by a signal. By any thread.
  std::optional<FailedRank> ended_by() const;

 private:
  std::string gather_identities(const Job& job, int port);
  std::string why_not_connected(const Job& job);
  void stop();
  bool is_settled() const { return condemned_ || stood_down_; }
  void announce(int exit_code, std::unique_lock<std::mutex>& lock);
  void wait_for_the_end(std::unique_lock<std::mutex>& lock);
  void run(const std::stop_token& stop);
  void act(double now);
  void begin_to_judge(double now);
  void send_heartbeat(double now);
  void take(int from, const Frame& frame);
  void take_report(int from, const Verdict& verdict);
  void join(int rank);
  void lose(int rank);
  void pass_on_failure();
  void note_stand_down(int exit_code);
  void note_who_fails(int rank, int exit_code);
  void judge(double now);
  void look_after_launcher();
  [[noreturn]] void succeed_hub(const Verdict& verdict);
  void ask(int rank, const Verdict& verdict);
  void note_verdict();
  [[noreturn]] void condemn(const Verdict& verdict, bool tells);
  void call_before_exit(const Verdict& verdict, const std::string& sentence);
  [[noreturn]] void end_process(int exit_code);

  bool is_hub() const { return rank_ == 0; }
  bool is_watched(int rank) const { return is_hub() || rank == 0; }

  const StatusBoard& board_;
  WatchdogOptions options_;
  int rank_, size_;
  std::string why_off_;
  std::vector<RankIdentity> identities_;
  std::vector<SocketAddress> addresses_;
  std::optional<Launcher> launcher_ = launcher_of_this_process();
  std::unique_ptr<Endpoint> endpoint_;

  // The thread's.
  std::optional<Judge> judge_;  // of all ranks on rank 0, elsewhere of rank 0 alone; once ranks are watched
  double sent_ = 0;             // the last heartbeat
  RankSummary said_;            // in it
  double hub_heard_ = 0;
  RankSummary hub_said_;
  std::set<int> left_;                   // ranks that said goodbye
  std::optional<Verdict> lost_;          // found here
  std::optional<Verdict> told_;          // by the hub, or by a rank that took its place
  std::optional<double> stood_down_at_;  // a rank ends the job itself
  int exit_code_ = 0;                    // that rank's
  bool dials_again_ = false;
  std::optional<Succession> succession_;  // while others are asked whether they tell

  // Shared with the main thread.
  mutable std::mutex mutex_;
  std::mutex before_exit_mutex_;
  std::condition_variable changed_;
  bool speaks_ = false, watches_ = false, condemned_ = false, stood_down_ = false, called_ = false;
  int joined_ = 0;
  bool fails_ = false;          // stand_down() was called
  std::optional<int> failing_;  // with this exit code, until it is passed on
  std::optional<FailedRank> ended_by_;
  std::function<void(const Verdict&, const std::string&)> before_exit_;
  std::jthread thread_;
};

}  // namespace plumb
