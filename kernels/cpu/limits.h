// Limits of this host's CPU, read from the kernel: for rooflines, and for rejecting runs that don't fit.
#pragma once

#include <string>
#include <vector>

#include "kernels/targets.h"

namespace plumb::cpu {

// CPUs that this process may run on, ascending; empty if unknown.
std::vector<int> affinity_cpus();
// Their number, at least 1.
int available_cpus();

// The value after `key` and an optional colon, in the first line that starts with `key` of a file like
// /proc/meminfo; empty if not found. An empty key gives the first line.
std::string proc_value(const std::string& path, const std::string& key);

// Kernel files with the amount of free memory.
struct MemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string cgroup = "/sys/fs/cgroup";  // a version 2 control group; a container's own group
};

// Bytes that this process can still allocate: the smaller of MemAvailable and the rest of the control group's
// limit. memory.current includes cached files; inactive ones (memory.stat) are reclaimed first, so they count
// as free.
double available_bytes(const MemoryFiles& files = {});

// Limits of `threads` threads of this CPU. Peak = threads x clock (cpuinfo) x FLOPs per cycle of the widest
// vectors (two fused multiply-adds of 512 or 256 bits). Memory bandwidth is assumed; no interface reports it.
// Both are rough, as `source` says. memory_bytes: available_bytes() now.
DeviceLimits this_cpu(int threads);

}  // namespace plumb::cpu
