// This host: how env.json and plumbline doctor describe it, and what this process may use of its CPUs and
// memory, read from the kernel.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace plumb {

// {"host", "kernel", "cpu", "cpus", "affinity", "memory_bytes", "interfaces", "driver"}, the last only where
// NVIDIA's is loaded. "interfaces": names of those that are up and have an address, loopback aside
// ("eth0, ib0").
nlohmann::ordered_json machine_json();
// The value that more than half of the hosts have, the first one's of two hosts; empty if there is none.
std::string usual_value(const std::vector<std::string>& values);
// "580.65.06" out of the text of /proc/driver/nvidia/version; empty if it has none.
std::string driver_version(const std::string& text);

// CPUs that this process may run on, ascending; empty if unknown.
std::vector<int> affinity_cpus();
// Their number, at least 1.
int available_cpus();
// As the kernel writes them: "0-3,8".
std::string cpu_list_text(const std::vector<int>& cpus);
int online_cpus();
// CPUs (hardware threads) of one core of this host; 1 if the kernel doesn't tell.
int cpus_per_core();
// Processes that run or wait for a CPU now, this one left out: the mean of ten looks within 0.2 s. The
// kernel's averages over a minute and more contain what has ended.
double running_processes();
// From this many of them per CPU on a host is busy: times get longer and vary.
inline constexpr double kBusyLoadPerCpu = 0.5;

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

}  // namespace plumb
