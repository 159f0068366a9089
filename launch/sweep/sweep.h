// Runs a plan, one process after the other. At every moment each run is either finished, with its log and its
// folder in runs/, or will be done from the beginning.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/sweep/sweep_plan.h"

namespace plumb {

struct SweepProgress {
  std::size_t finished = 0, total = 0;  // runs
  std::string run;                      // under way
  int attempt = 1;
};

struct FailedRun {
  std::string name, reason;
  int code = 0;
  int failures = 0;  // attempts that failed
};

struct SweepOutcome {
  std::size_t finished = 0, total = 0;  // runs, those of an earlier start included
  std::vector<FailedRun> failed;        // in the order of the plan
  int signal = 0;                       // ended the sweep before its time; 0: none did
};

struct SweepListener {
  std::function<void(const SweepProgress&)> progress;     // about five times a second
  std::function<void(const std::string& sentence)> warn;  // an attempt failed, a result is gone
  std::function<bool(const SweepRun&)> is_wanted;         // asked before each run; empty: all are
};

// The sentence of a program that failed, or of launch/run; without one, what mpirun says of a process that
// ended, or its first line (of launch/run the second one).
std::string reason_in(const std::filesystem::path& output, const std::string& program, bool over_hosts);

// Does the runs that aren't done: failed ones get 1 + retries attempts anew. What unfinished attempts left is
// removed first. The caller has claimed the folder. Throws Error(unavailable) if the launcher or a program
// isn't there, Error(io_error).
SweepOutcome run_sweep(const SweepPlan& plan, const SweepFolder& folder, const SweepListener& listener);

// Whether the run's log and result are there.
bool is_done(const SweepPlan& plan, const SweepFolder& folder, const SweepRun& run);

// Hash over the programs of the plan. Throws Error(unavailable) if one isn't there.
std::string build_hash(const SweepPlan& plan);

// 0; 128 + n after signal n; the first failed run's own code where that is a documented one, else 70.
int exit_code_of(const SweepOutcome& outcome);

}  // namespace plumb
