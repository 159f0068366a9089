// What a run keeps: its record (result.json), filled in as the run goes on, and the files beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/output/log_writer.h"
#include "bench/output/result_writer.h"
#include "bench/run/device_memory.h"
#include "bench/run/stages.h"
#include "bench/run/timed_run.h"
#include "comm/job.h"
#include "results/record/schema.h"

namespace plumb {

// What runs, where, with which options.
RunRecord make_record(const DescribedStep& step);
// Parameters, memory, layers that tuning left unfused.
void add_plan(const PlannedStep& step, RunRecord& record);
// After the window, of this rank: waits, and the most memory that was held.
void add_window(const BoundStep& step, const Measurements& measured, RunRecord& record);
// What all ranks measured; every rank calls it. Rank 0's record has images per second and energy.
void add_measurements(const BoundStep& step, const Measurements& measured, RunRecord& record);
// Images that any rank skipped: how many times, and the first that the lowest rank met. Every rank calls it.
CorruptFiles corrupt_of_all_ranks(const Job& job, const BatchSource& source);
// `corrupt`: some.
std::string corrupt_text(const CorruptFiles& corrupt);

// Logs, and the folder with result.json: rank 0 has them.
struct RunOutputs {
  std::string folder;  // the absolute path, on every rank; a host that doesn't share it may not have it
  std::optional<LogWriter> log;
  std::optional<ResultWriter> results;
};

// Makes them on rank 0, with env.json and a result.json that says failed, and notes in the record the run's
// id, number and processes; all ranks call it. Throws Error(cannot_create), and leaves nothing then.
RunOutputs open_outputs(const ResolvedRun& run, RunRecord& record);

// The line of the iteration that ended last.
void log_iteration(const BenchOptions& options, const Measurements& measured, LogWriter& log);

// profile.json and trace.json, where they are asked for. Returns the profile as a table, or nothing.
std::string write_profile(const BoundStep& step, const RunRecord& record,
                          const std::vector<InstructionTime>& stamped, const ResultWriter& results);

// Integers through a step's collectives, before the first iteration: a sum that is wrong on all ranks alike
// leaves replicas identical, and no check after the run finds it. Carries every collective out once, and
// checks every element. Every rank calls it; it leaves zeros in the buffers. Throws
// Error(verification_failed), on all ranks.
void check_exchange(BoundStep& step, const MessageDamage& damage = {});

// Returns fnv1a over all parameters that are the same on every rank, in public order and layout. Sharded rows
// don't count.
std::uint64_t parameter_checksum(const BoundStep& step);

// Notes the checks of a run in the record, and the tensors of a deterministic one; every rank calls it.
// Throws Error(verification_failed), on all ranks, for the first check that doesn't hold; with --no-check
// only for what isn't finite. `initial_checksum`: of the parameters before the run, the same on all ranks.
void check_run(const BoundStep& step, std::uint64_t initial_checksum, RunRecord& record);

}  // namespace plumb
