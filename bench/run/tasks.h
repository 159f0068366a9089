// What a bench program does: it plans a step without a job, or trains. In a job, every rank calls
// run_training(); answer_…() and …_schema() need no job.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/options/options.h"
#include "bench/run/device_memory.h"
#include "bench/run/interruption.h"
#include "bench/run/stages.h"
#include "comm/job.h"
#include "comm/watchdog/watchdog.h"

namespace plumb {

// --dry-run: the memory, work, traffic and roofline time of a step, from its plan alone. Totals, memory,
// phases and the longest instructions for people, at most 100 columns wide. With --json an object of
// dry_run_schema(). Throws Error(usage) if the device lacks the precision.
std::string answer_dry_run(const BenchOptions& asked);
nlohmann::ordered_json dry_run_schema();

// --list-targets: the devices that a step can be planned for, with their memory, bandwidth, peaks, and the
// source of these; at most 100 columns.
std::string answer_targets(bool json);
nlohmann::ordered_json targets_schema();

struct TrainingHooks {
  Interruption& interruption;
  // May be null.
  Watchdog* watchdog = nullptr;
  // See check_exchange(); on the ranks that have it.
  MessageDamage damage_message;
  // Called on every rank when an iteration has ended, outside the timed interval's compute; tests do damage
  // here.
  std::function<void(std::int64_t iteration, BoundStep&)> after_iteration;
};

// One timed training run, to a log, a result folder and a table. Throws Error on which all ranks agree, or
// FailureOfThisRank. result.json says what failed in either case.
void run_training(const Job& job, const BenchOptions& options, const TrainingHooks& hooks);

}  // namespace plumb
