// Starting runs on hosts: finds launch/run, which knows host lists, mpirun and srun, and asks it.
#pragma once

#include <filesystem>

#include "launch/sweep/sweep_plan.h"

namespace plumb {

// launch/run of the build, package or bundle that this program is part of: in launch/ or
// share/plumbline/launch/ of a folder around it. Throws Error(unavailable) if there is none.
std::filesystem::path find_launch_run();

// Throws Error(usage) with the sentence of launch/run (without its name) if it can't start `devices_per_node`
// ranks of `program`, its name and options, on each of `nodes` of the hosts; Error(unavailable) if it doesn't
// work at all. It starts nothing.
void check_host_layout(const SweepLauncher& launcher, int nodes, int devices_per_node,
                       const std::vector<std::string>& program);

}  // namespace plumb
