// bench_allreduce: its command line, and what it measures in a job.
#pragma once

#include <functional>

#include "bench/run/device_memory.h"

namespace plumb {

class Job;

// Reads the command line, and answers it or measures. Returns the exit code (verification_failed, after the
// table, if an element was wrong on any rank). `damage_of`: for tests, which rank's results are changed.
int run_allreduce_program(int argc, char** argv,
                          const std::function<MessageDamage(const Job&)>& damage_of = {});

}  // namespace plumb
