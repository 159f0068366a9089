// What every program's main shares: failures become one sentence on stderr and an exit code.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "comm/job.h"

namespace plumb {

// A failure that other ranks don't know of: the job must be ended for them (Job::abort).
class FailureOfThisRank : public Error {
 public:
  explicit FailureOfThisRank(const Error& error) : Error(error.code(), error.what()) {}
};

// Runs `body` and returns the exit code; for failures before there is a job: if all ranks of a launcher meet
// the same one, rank 0 tells, else the rank that met it. What a std::exception says is a defect (70).
int run_program(const std::string& program, const std::function<void()>& body);

// A failure that only this rank knows of, in a job of several: tells it with the rank, and ends the job for
// all ranks. At once, before anything unwinds: what a broken job holds (captured graphs, a communicator,
// device memory) may wait for ever for ranks that are gone. In a job of one it returns.
void end_for_all(const std::string& program, const Job& job, const Error& error);

// Runs `body` inside a job and tells its failure, with the rank. One that only this rank knows of ends the
// job for all ranks; others leave as ErrorToldElsewhere. Lack of memory is 71.
void run_in_job(const std::string& program, const Job& job, const std::function<void()>& body);

}  // namespace plumb
