// What plumbline accept alone does: it plans its time, and measures how a training step scales.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/sweep/sweep_plan.h"
#include "launch/verdict/verdict.h"
#include "results/record/links.h"
#include "results/simulation/collective_cost.h"

namespace plumb {

struct AcceptPlan {
  int hosts = 1, devices_per_host = 1;
  double budget_seconds = 600;
  double start_seconds = 15;  // that a run takes besides its steps: start, tuning, probe

  // How long each run is timed; its start is not included.
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

struct ScalingJudgement {
  std::filesystem::path runs;           // folder of run folders, one device of which was profiled
  std::optional<Links> links;           // as measured
  std::optional<double> expected_link;  // bytes/s that a link between hosts should reach
  bool shares_machine = false;          // hosts are names of one machine, whose CPUs they share
  std::vector<std::string> hosts;       // that took part
};

// Each case on several devices against what its links allow (limit 10 %); what holds it back is the remark,
// and what links as they should be would allow: a slow link excuses no slow step. Throws nothing.
void add_scaling(Verdict& verdict, const ScalingJudgement& judgement);

// The three runs or more before this one of its case lie within 3 %: more of them would add little.
bool is_settled(const std::filesystem::path& runs, const SweepRun& next);

// Each case of `runs` against the same one of `earlier`, both folders of run folders: fails where it is
// significantly slower by over 3 %, unless `is_busy`: other work ran on the hosts. Throws nothing.
void add_against(Verdict& verdict, const std::filesystem::path& runs, const std::filesystem::path& earlier,
                 bool is_busy);

}  // namespace plumb
