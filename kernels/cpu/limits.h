// What this host's CPU can do, for rooflines and for refusing what can't fit.
#pragma once

#include "kernels/targets.h"

namespace plumb::cpu {

// CPUs of this process's affinity mask.
int available_cpus();

// `threads` threads of this CPU. The peak is threads x clock (cpuinfo) x floating-point operations per cycle
// of the widest vectors (two fused multiply-adds of 512 or 256 bits); memory bandwidth is an assumed figure,
// since no interface tells it: both are for orientation, which `source` says. memory_bytes: what is available
// now to this process (MemAvailable, cut by the cgroup's limit).
DeviceLimits this_cpu(int threads);

}  // namespace plumb::cpu
