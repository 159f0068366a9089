// Iterations that are looked at instruction by instruction, for profiles and traces.
#pragma once

#include <vector>

#include "bench/run/runner.h"
#include "bench/run/session.h"
#include "kernels/device.h"

namespace plumb {

// Enough for a median, little beside a run.
inline constexpr int kStampedIterations = 10;

// Runs `count` iterations with every instruction stamped, and gives their times. They are in no log, and
// parameters and running statistics are put back to what they were. On a device that runs behind the host's
// back each follows one without stamps, which keeps it busy until all of the stamped one is enqueued: so what
// is timed is the device, not how fast it is given work. Every rank calls it, with the same count.
std::vector<InstructionTime> run_stamped(Session& session, Runner& runner, int count = kStampedIterations);

}  // namespace plumb
