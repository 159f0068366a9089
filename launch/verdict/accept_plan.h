// How plumbline accept spends its time.
#pragma once

#include <string>
#include <vector>

#include "launch/sweep/sweep_plan.h"
#include "results/simulation/collective_cost.h"

namespace plumb {

struct AcceptPlan {
  int hosts = 1, devices_per_host = 1;
  double budget_seconds = 600;
  double start_seconds = 15;  // that a run takes besides its steps: start, tuning, probe

  // Of every timed run, without its start.
  double run_seconds() const;
  // One device, all devices of a host, then 2, 4, … hosts and all of them.
  std::vector<Layout> cases() const;
  // Runs of each case, unless they settle before: as many as most of the budget allows, 1 to 7.
  int repetitions() const;
  // Seconds of all steps.
  double seconds() const;
};

// The runs of the scaling step. `step`: its program and options, as a run without hosts has them.
SweepPlan scaling_plan(const AcceptPlan& plan, SweepGroup step, SweepLauncher launcher, bool on_gpus);

// The steps with their seconds.
std::string plan_text(const AcceptPlan& plan);

}  // namespace plumb
