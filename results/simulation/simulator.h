// Discrete-event simulation of one data-parallel step: compute and communication side by side.
#pragma once

#include <functional>
#include <vector>

#include "results/simulation/step_model.h"

namespace plumb {

struct SimulatedCollective {
  double ready = 0;  // seconds since the step began: its buffer is complete
  double start = 0, end = 0;
  double exposed = 0;  // the part of start … end in which compute waits for it or for one behind it
};

struct SimulatedStep {
  double seconds = 0;                            // until compute and all collectives have ended
  double exposed_seconds = 0;                    // in which compute waits for a collective
  std::vector<SimulatedCollective> collectives;  // as StepModel::collectives
};

// All ranks are alike. Compute instructions run in their order, each in its time. Collectives run in their
// order, one at a time: start = max(ready, end of the one before), end = start + seconds_of(collective).
// Compute waits where StepCollective::before says so.
SimulatedStep simulate(const StepModel& step, const std::function<double(const StepCollective&)>& seconds_of);

// Expected maximum of `count` standard normal values: 1.42, 1.77 and 2.07 of 8, 16 and 32. If the ranks'
// steps vary independently, a step of all takes that many standard deviations longer.
double expected_maximum(int count);

}  // namespace plumb
