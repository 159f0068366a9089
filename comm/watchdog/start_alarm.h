// Ends this process where it hangs, or MPI ends it, before or after ranks can watch each other: in MPI_Init,
// at a file that another process has locked, in MPI_Finalize.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/status_board.h"
#include "comm/watchdog/launcher.h"

namespace plumb {

struct StartAlarmOptions {
  double startup_timeout_seconds = 600;  // of each phase before warm-up
  double end_timeout_seconds = 30;       // of the end
  double lost_rank_seconds = 5;          // in which mpirun ends a job of which a rank is gone
  std::function<void(const std::string& sentence)> tell;
};

// Watches the board's phase from a thread of its own; made before MPI_Init, it ends after MPI_Finalize. A
// phase that takes too long is told of in one sentence, and the process ends with 75. The lowest rank that
// sees a stopped one on its host comes first, then rank 0 by the launcher's environment: mpirun ends the
// others then. Until ranks watch each other, a rank of this host that is gone is told of after
// lost_rank_seconds, as srun may wait for the others, and a launcher that is gone at once. Time in which this
// process is stopped itself doesn't count. One per process.
class StartAlarm {
 public:
  StartAlarm(const StatusBoard& board, StartAlarmOptions options);
  ~StartAlarm();
  StartAlarm(const StartAlarm&) = delete;
  StartAlarm& operator=(const StartAlarm&) = delete;

  // MPI_Init has returned. Where it fails, as with a full TMPDIR, Open MPI calls exit() or _exit(), and its
  // mpirun may then wait for ever, or MPI_Init itself does. So either before this call, or 10 s in it with
  // less than 1 MiB free in TMPDIR, is told of, ends the launcher, and becomes 70.
  void mpi_has_started();
  // Called with the exit code before this alarm ends the process, so that other ranks don't take it for lost;
  // returns unless they end all the same. Empty: there is nobody to tell. Waits for a call that is under way.
  void announce_through(std::function<void(int exit_code)> announce);
  // Ranks watch each other from now on, with the same limits: this one waits longer, for their sentence.
  void others_watch();

 private:
  static void note_end();
  friend void note_end_of_process();
  void run(const std::stop_token& stop);
  void look_at_host();
  double seconds_in_phase(const RunStatus& status, double now);
  std::optional<StartedRank> gone_rank() const;
  std::optional<StartedRank> stopped_rank() const;
  bool is_first_of_host() const;
  void look(const RunStatus& status);
  std::string late_text(RunPhase phase, double seconds) const;
  [[noreturn]] void tell_of_failed_start();
  [[noreturn]] void end_without_launcher(RunPhase phase);
  [[noreturn]] void end_as_one_of_host(const std::string& sentence, ExitCode exit_code);
  [[noreturn]] void end(const std::string& sentence, ExitCode exit_code);
  void end_launcher() const;

  const StatusBoard& board_;
  StartAlarmOptions options_;
  std::optional<Launcher> launcher_ = launcher_of_this_process();
  std::optional<LauncherFence> fence_;  // where it ends without a word
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool others_watch_ = false;
  std::function<void(int)> announce_;
  std::filesystem::path tmpdir_;
  std::shared_ptr<std::atomic<bool>> tmpdir_is_full_;  // empty: not looked at yet
  std::map<int, pid_t> seen_;                          // ranks of this host
  std::vector<StartedRank> there_;                     // those that haven't ended
  std::optional<double> missed_since_;                 // one of them has
  double host_looked_at_ = 0, looked_at_ = 0;
  std::int64_t phase_since_ns_ = 0;
  double paused_seconds_ = 0;  // of that phase
  std::jthread thread_;        // last: ends before what it uses
};

}  // namespace plumb
