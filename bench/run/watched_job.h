// A job whose ranks watch each other (comm/watchdog): what a program that trains owns.
#pragma once

#include <optional>
#include <string>

#include "bench/options/options.h"
#include "comm/job.h"
#include "comm/status_board.h"
#include "comm/watchdog/watchdog.h"

namespace plumb {

// Owns the job, the board that its ranks write and, unless WatchOptions say otherwise, the watchdog, which
// watches this process from the constructor to the end of the destructor.
class WatchedJob {
 public:
  // As Job's constructor. `program`: in front of sentences.
  WatchedJob(const std::string& program, const WatchOptions& options, int* argc, char*** argv,
             JobStart start = {});
  ~WatchedJob();
  WatchedJob(const WatchedJob&) = delete;
  WatchedJob& operator=(const WatchedJob&) = delete;

  const Job& job() const { return *job_; }

  // From now on ranks watch each other; nothing with a single rank. Every rank calls it, once all are known
  // to run the same build. Warns on rank 0 if they can't, unless `quiet`.
  void watch_ranks(bool quiet);
  // Null without a watchdog.
  Watchdog* watchdog() { return watchdog_ ? &*watchdog_ : nullptr; }

 private:
  StatusBoard board_;
  std::optional<Watchdog> watchdog_;
  std::optional<Job> job_;
};

}  // namespace plumb
