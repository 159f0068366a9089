#include "base/machine/machine.h"

#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <thread>

#include "base/machine/host_addresses.h"
#include "base/text.h"

namespace plumb {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// A control group's files.
struct GroupFiles {
  const char *limit, *used, *cached;  // the last one is a key of memory.stat
};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"},
    kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

// Returns infinity if the process is in no group, or its group has no limit: version 2 of control groups then
// writes "max", version 1 a number near 2^63.
double left_in_group(const std::string& folder, const GroupFiles& names) {
  const double limit = number_or(proc_value(folder + "/" + names.limit, ""), kUnlimited);
  if (limit == kUnlimited) return kUnlimited;
  const double used = number_or(proc_value(folder + "/" + names.used, ""), 0);
  const double cached = number_or(proc_value(folder + "/memory.stat", names.cached), 0);
  return std::max(0.0, limit - std::max(0.0, used - cached));
}

// "/slice/job" of a line "0::/slice/job", of version 1 "4:memory:/slice/job"; empty for the root.
std::string group_path(const std::string& file, bool is_second) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (is_second ? controllers != ",," : controllers.find(",memory,") == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    return path.starts_with('/') && path != "/" ? path : "";
  }
  return "";
}

}  // namespace

std::string driver_version(const std::string& text) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(R"(\s(\d+\.\d+(\.\d+)?)\s)")) ? found[1].str() : "";
}

nlohmann::ordered_json machine_json() {
  utsname name{};
  uname(&name);
  const std::string memory = proc_value("/proc/meminfo", "MemTotal");  // "8123456 kB"
  std::set<std::string> interfaces;
  for (const InterfaceAddress& one : addresses_of_this_host().addresses) interfaces.insert(one.interface);
  const long long memory_kib = std::strtoll(memory.c_str(), nullptr, 10);
  nlohmann::ordered_json machine{
      {"host", name.nodename},
      {"kernel", std::string(name.sysname) + " " + name.release + " " + name.machine},
      {"cpu", proc_value("/proc/cpuinfo", "model name")},
      {"cpus", online_cpus()},
      {"affinity", cpu_list_text(affinity_cpus())},
      {"memory_bytes", memory_kib * 1024},
      {"interfaces", fmt::format("{}", fmt::join(interfaces, ", "))}};
  const std::string driver = driver_version(proc_value("/proc/driver/nvidia/version", "") + " ");
  if (!driver.empty()) machine["driver"] = driver;
  return machine;
}

std::string usual_value(const std::vector<std::string>& values) {
  std::map<std::string_view, std::size_t> counts;
  for (const std::string& value : values) ++counts[value];
  for (const auto& [value, count] : counts)
    if (2 * count > values.size()) return std::string(value);
  return values.size() == 2 ? values.front() : "";
}

std::vector<int> affinity_cpus() {
  // The kernel may have more CPUs than cpu_set_t has bits.
  constexpr int kMostCpus = 16384;
  const std::size_t bytes = CPU_ALLOC_SIZE(kMostCpus);
  std::vector<cpu_set_t> mask(bytes / sizeof(cpu_set_t) + 1);
  std::vector<int> cpus;
  if (sched_getaffinity(0, bytes, mask.data()) != 0) return cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu)
    if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, mask.data())) cpus.push_back(cpu);
  return cpus;
}

int available_cpus() {
  return std::max(1, static_cast<int>(affinity_cpus().size()));
}

std::string cpu_list_text(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    append_part(text, std::to_string(cpus[first]), ",");
    if (last > first) text += fmt::format("-{}", cpus[last]);
    first = last + 1;
  }
  return text;
}

double running_processes() {
  constexpr int kMoments = 10;
  double sum = 0;
  for (int i = 0; i < kMoments; ++i) {
    double one, five, fifteen, running = 1;
    std::ifstream("/proc/loadavg") >> one >> five >> fifteen >> running;
    sum += running - 1;  // this process runs
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return sum / kMoments;
}

int online_cpus() {
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

int cpus_per_core() {
  const std::vector<int> cpus = affinity_cpus();
  if (cpus.empty()) return 1;
  // One bit per CPU of the core, in hexadecimal groups: "00000003".
  const std::string bits =
      proc_value(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings", cpus.front()), "");
  int count = 0;
  for (const char digit : bits)  // a comma is none, and counts 0
    count += std::popcount(std::strtoul(std::string(1, digit).c_str(), nullptr, 16));
  return std::max(1, count);
}

double number_or(const std::string& text, double otherwise) {
  try {
    return std::stod(text);
  } catch (const std::exception&) {
    return otherwise;
  }
}

std::string proc_value(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':', key.size());
    const std::size_t start =
        line.find_first_not_of(" \t", colon == std::string::npos ? key.size() : colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

double available_bytes(const MemoryFiles& files) {
  double bytes = number_or(proc_value(files.meminfo, "MemAvailable"), -1) * 1024;
  struct sysinfo without_proc {};
  if (bytes < 0 && sysinfo(&without_proc) == 0)
    bytes = static_cast<double>(without_proc.freeram + without_proc.bufferram) * without_proc.mem_unit;
  for (const bool is_second : {true, false}) {
    const GroupFiles& names = is_second ? kVersion2 : kVersion1;
    const std::string mount = files.cgroup + (is_second ? "" : "/memory");
    std::string path = group_path(files.groups, is_second);
    while (true) {
      bytes = std::min(bytes, left_in_group(mount + path, names));
      if (path.empty()) break;
      path.resize(path.rfind('/'));
    }
  }
  return bytes;
}

}  // namespace plumb
