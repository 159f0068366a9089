// bench_allreduce: its command line, and what it measures in a job.
#pragma once

#include <functional>

#include "bench/run/device_memory.h"

namespace plumb {

class Job;

// Reads the command line, and answers it or measures: rank 0 prints the figures and writes --output. Returns
// the exit code (verification_failed, after the table, if an element was wrong on any rank); failures are on
// stderr. `damage_of`: for tests, which rank's results are changed and how.
int run_allreduce_program(int argc, char** argv,
                          const std::function<MessageDamage(const Job&)>& damage_of = {});

}  // namespace plumb
