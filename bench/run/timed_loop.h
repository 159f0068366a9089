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

// This rank's iterations. Filled as iterations end, so that a failure in between leaves what was measured.
struct TimedIterations {
  StepTimer timer{0};
  std::vector<IterationMetrics> metrics;
  // Mean per iteration of the window.
  double exposed_communication_seconds = 0, data_wait_seconds = 0;
  // Runner::communicating_seconds; 0 where the device carries collectives.
  double communicating_seconds = 0;
};

// Runs --iters iterations, and more until --seconds are over, on every rank alike. `ended` is called for each
// in order, once it has ended; on a device that runs behind the host's back a few later ones may be under way
// by then. Of a session that captures the first iteration runs step by step, and all others are replays of
// one capture. `look_up`: called often, between instructions that the host computes, while it waits for a
// device, and after each iteration; whatever it throws ends the loop. Null: never.
void run_timed(const Job& job, Session& session, Runner& runner, TimedIterations& result,
               const std::function<void(std::int64_t iteration)>& ended,
               const std::function<void()>& look_up);

// Runs a few iterations more with every instruction stamped, for profiles and traces, and gives their times.
// They are in no log, and parameters and running statistics are put back to what they were. On a device that
// runs behind the host's back each follows one without stamps, which keeps it busy until all of the stamped
// one is enqueued: so what is timed is the device, not how fast it is given work. Every rank calls it.
std::vector<InstructionTime> run_stamped(Session& session, Runner& runner);

}  // namespace plumb
