// One timed training run, from options to a log, a result folder and a table.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/options/options.h"
#include "bench/run/device_memory.h"
#include "bench/run/interruption.h"
#include "bench/run/stages.h"
#include "comm/job.h"
#include "comm/watchdog/watchdog.h"

namespace plumb {

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

// Runs, checks and reports. Every rank calls it. Throws Error on which all ranks agree, or FailureOfThisRank.
// result.json says what failed in either case.
void run_training(const Job& job, const BenchOptions& options, const TrainingHooks& hooks);

}  // namespace plumb
