// The iterations of a run, one after the other without a pause, as the device's clock saw them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/run/runner.h"
#include "bench/run/session.h"
#include "bench/run/step_timer.h"
#include "comm/job.h"

namespace plumb {

// Of this rank. Filled as iterations end, so that a failure in between leaves what was measured.
struct TimedIterations {
  StepTimer timer{0};
  std::vector<IterationMetrics> metrics;
  // Mean per iteration of the window.
  double exposed_communication_seconds = 0, data_wait_seconds = 0;
};

// Runs --iters iterations, and more until --seconds are over, on every rank alike. `ended` is called for each
// in order, once it has ended; on a device that runs behind the host's back a few later ones may be under way
// by then. With `capture` the first iteration runs step by step, and all others are replays of one capture.
void run_timed(const Job& job, Session& session, Runner& runner, bool capture, TimedIterations& result,
               const std::function<void(std::int64_t iteration)>& ended);

}  // namespace plumb
