// A host as env.json and plumbline doctor describe it, and how hosts differ.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace plumb {

// This host: {"host", "kernel", "cpu", "cpus", "affinity", "memory_bytes", "interfaces", "driver"},
// the last only where NVIDIA's is loaded. "interfaces": names of those that are up and have an address,
// loopback aside ("eth0, ib0").
nlohmann::ordered_json machine_json();
// The value that more than half of the hosts have, the first one's of two hosts; empty if there is none.
std::string usual_value(const std::vector<std::string>& values);
// "580.65.06" out of the text of /proc/driver/nvidia/version; empty if it has none.
std::string driver_version(const std::string& text);

// As the kernel writes them: "0-3,8".
std::string cpu_list_text(const std::vector<int>& cpus);
int online_cpus();
// Processes that run or wait for a CPU now, this one left out: the mean of ten looks within 0.2 s. The
// kernel's averages over a minute and more contain what has ended.
double running_processes();
// From this many of them per CPU on a host is busy: times get longer and vary.
inline constexpr double kBusyLoadPerCpu = 0.5;
// CPUs (hardware threads) of one core of this host; 1 if the kernel doesn't tell.
int cpus_per_core();

}  // namespace plumb
