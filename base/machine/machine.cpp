#include "base/machine/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <thread>

#include "base/machine/host_addresses.h"
#include "base/machine/limits.h"
#include "base/text.h"

namespace plumb {
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
  std::ifstream stream("/proc/driver/nvidia/version");
  std::string line;
  if (std::getline(stream, line))
    if (const std::string driver = driver_version(line + " "); !driver.empty()) machine["driver"] = driver;
  return machine;
}

std::string usual_value(const std::vector<std::string>& values) {
  std::map<std::string_view, std::size_t> counts;
  for (const std::string& value : values) ++counts[value];
  for (const auto& [value, count] : counts)
    if (2 * count > values.size()) return std::string(value);
  return values.size() == 2 ? values.front() : "";
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
  std::ifstream stream(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings", cpus.front()));
  std::string bits;
  stream >> bits;
  int count = 0;
  for (const char digit : bits)  // a comma is none, and counts 0
    count += std::popcount(std::strtoul(std::string(1, digit).c_str(), nullptr, 16));
  return std::max(1, count);
}

}  // namespace plumb
