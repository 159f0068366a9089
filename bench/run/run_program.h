// The frame of a program that trains. It answers questions that need no job, turns a failure into one
// sentence on stderr and an exit code, and starts, watches and ends ranks.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/console/messages.h"
#include "base/error.h"
#include "bench/options/options.h"
#include "bench/run/interruption.h"
#include "comm/job.h"
#include "comm/watchdog/watchdog.h"

namespace plumb {

// A failure of one rank, which must end the job for the others (Job::abort).
class FailureOfThisRank : public Error {
 public:
  explicit FailureOfThisRank(const Error& error) : Error(error.code(), error.what()) {}
};

// Runs `body` and returns the exit code. For failures before there is a job: rank 0 prints one that all ranks
// of a launcher meet, else the rank that met it does. A std::exception is a defect (70).
int run_program(const std::string& program, const std::function<void()>& body);

// The answer, if one is asked for. `table`: with the defaults.
std::optional<std::string> answer_to(const Questions& questions, const OptionTable& table, bool json);

struct JobOptions {
  WatchOptions watch;
  bool probe = true;  // compare the hosts' addresses (bench/links/address_check.h)
  bool quiet = false;
};
// `watchdog`: null with --no-watchdog.
using JobBody = std::function<void(const Job& job, Interruption& interruption, Watchdog* watchdog)>;

// Starts the job, compares the ranks' builds, connects the watchdog, and runs `body`; prints its failure,
// with the rank. A failure that only this rank met, or different builds end the job for all ranks; others are
// thrown on as ErrorToldElsewhere.
void run_job(const std::string& program, const JobOptions& options, int* argc, char*** argv,
             const JobBody& body);

// Prints a failure that only this rank met, with its rank, and ends the job for all ranks. Call it before
// anything unwinds: destructors (captured graphs, a communicator, device memory) may wait for ever for ranks
// that are gone. With a single rank it returns.
void end_for_all(const std::string& program, const Job& job, const Error& error);

// Rank 0's; other ranks' print nothing. With --verbose several ranks' begin with host and rank.
Messages messages_of(const Job& job, const BenchOptions& options);

}  // namespace plumb
