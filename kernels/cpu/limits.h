// What this host's CPU can do, for rooflines and for refusing what can't fit, and what the kernel tells of
// it.
#pragma once

#include <string>
#include <vector>

#include "kernels/targets.h"

namespace plumb::cpu {

// CPUs that this process may run on, ascending; empty if the kernel doesn't tell.
std::vector<int> affinity_cpus();
// How many they are, at least 1.
int available_cpus();

// What stands after `key`, and a colon where there is one, in the first line of a file like /proc/meminfo
// that starts with `key`; empty if there is none. An empty key: the first line.
std::string proc_value(const std::string& path, const std::string& key);

// Where the kernel tells how much memory is left.
struct MemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string cgroup = "/sys/fs/cgroup";  // folder of a version 2 control group, as a container sees its own
};

// Bytes that this process can still get: MemAvailable, or what the control group's limit leaves if that is
// less. memory.current counts cached files as used; inactive ones (memory.stat) are given up first, without
// harm, and so count as free.
double available_bytes(const MemoryFiles& files = {});

// `threads` threads of this CPU. The peak is threads x clock (cpuinfo) x floating-point operations per cycle
// of the widest vectors (two fused multiply-adds of 512 or 256 bits); memory bandwidth is an assumed figure,
// since no interface tells it: both are for orientation, which `source` says. memory_bytes: available_bytes
// now.
DeviceLimits this_cpu(int threads);

}  // namespace plumb::cpu
