// bench_allreduce: its command line, and what it measures in a job.
#pragma once

#include "bench/allreduce/allreduce_options.h"
#include "bench/allreduce/measured_transfer.h"
#include "comm/job.h"

namespace plumb {

// Measures what `options` ask for, prints it on rank 0 and writes --out. Every rank calls it. Throws
// Error(verification_failed), after the table, if an element was wrong on any rank. `damage`: for tests.
void run_allreduce(const Job& job, const AllreduceOptions& options, const DamageHook& damage = {});

// Reads the command line, and answers it or measures. Returns the exit code; failures are on stderr.
// `damage_of`: for tests, which rank's results are changed and how.
int run_allreduce_program(int argc, char** argv, const std::function<DamageHook(const Job&)>& damage_of = {});

}  // namespace plumb
