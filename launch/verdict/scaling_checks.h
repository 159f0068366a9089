// Measured scaling as checks of a verdict.
#pragma once

#include <filesystem>
#include <optional>

#include "launch/sweep/sweep_plan.h"
#include "launch/verdict/verdict.h"
#include "results/record/links.h"

namespace plumb {

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
