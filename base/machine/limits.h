// What this process may use of the host's CPUs and memory, read from the kernel.
#pragma once

#include <string>
#include <vector>

namespace plumb {

// CPUs that this process may run on, ascending; empty if unknown.
std::vector<int> affinity_cpus();
// Their number, at least 1.
int available_cpus();

// The value after `key` and an optional colon, in the first line that starts with `key` of a file like
// /proc/meminfo; empty if not found. An empty key gives the first line.
std::string proc_value(const std::string& path, const std::string& key);

// The number that `text` begins with.
double number_or(const std::string& text, double otherwise);

// Kernel files with the amount of free memory.
struct MemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string groups = "/proc/self/cgroup";  // this process's control groups
  std::string cgroup = "/sys/fs/cgroup";     // where version 2 is mounted; version 1 in "memory" below it
};

// Bytes that the processes of this host and control group can still allocate: the smallest of MemAvailable
// and what is left of the limits of the control group (version 2 or 1) and of those around it. Their usage
// includes cached files; inactive ones (memory.stat) are reclaimed first, so they count as free. A container
// may not see the path of its group: then its own one is mounted in the group's place. Without /proc, what
// the kernel calls free.
double available_bytes(const MemoryFiles& files = {});

// Bytes that this process may still map (RLIMIT_AS, "ulimit -v", and RLIMIT_DATA, "ulimit -d"); infinite
// without a limit.
double address_space_left();
// Bytes of that which a thread's stack takes (RLIMIT_STACK).
double stack_bytes();

}  // namespace plumb
