// Ends this process where it hangs before or after ranks can watch each other: in MPI_Init, at a file that
// another process has locked, in MPI_Finalize.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "comm/status_board.h"
#include "comm/watchdog/launcher.h"

namespace plumb {

struct StartAlarmOptions {
  double startup_timeout_seconds = 600;  // of each phase before warm-up
  double end_timeout_seconds = 30;       // of the end
  std::function<void(const std::string& sentence)> tell;
};

// Watches the board's phase from a thread of its own; made before MPI_Init, it ends after MPI_Finalize. A
// phase that takes too long is told of in one sentence, and the process ends with 75. Rank 0, by the
// launcher's environment, comes first: mpirun ends the others then.
class StartAlarm {
 public:
  StartAlarm(const StatusBoard& board, StartAlarmOptions options);
  ~StartAlarm() { mpi_has_started(); }
  StartAlarm(const StartAlarm&) = delete;
  StartAlarm& operator=(const StartAlarm&) = delete;

  // MPI_Init has returned. Where it fails, as with a full TMPDIR, Open MPI calls exit(), and its mpirun may
  // then wait for ever. So an exit() before this call is told of, ends the launcher, and becomes 70.
  void mpi_has_started();
  // Ranks watch each other from now on, with the same limits: this one waits longer, for their sentence.
  void others_watch();

 private:
  struct AtExit {
    StartAlarm* alarm;  // null once MPI has started
  };
  static void note_exit(int, void* at_exit);
  void run(const std::stop_token& stop);
  void end_launcher() const;

  const StatusBoard& board_;
  StartAlarmOptions options_;
  AtExit* at_exit_ = nullptr;  // note_exit() frees it: it can't be taken back
  std::optional<Launcher> launcher_ = launcher_of_this_process();
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool others_watch_ = false;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace plumb
