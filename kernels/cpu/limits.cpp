#include "kernels/cpu/limits.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace plumb::cpu {
namespace {

constexpr double kAssumedBytesPerSecond = 25e9;  // two DDR4-3200 channels at about half of their 51.2 GB/s
constexpr double kAssumedHertz = 2.5e9;          // if cpuinfo has no clock

double number_or(const std::string& text, double otherwise) {
  try {
    return std::stod(text);
  } catch (const std::exception&) {
    return otherwise;
  }
}

double flops_per_cycle() {
  if (__builtin_cpu_supports("avx512f")) return 64;
  if (__builtin_cpu_supports("avx2")) return 32;
  return 8;
}

}  // namespace

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
  constexpr double kUnlimited = std::numeric_limits<double>::max();
  const double bytes = number_or(proc_value(files.meminfo, "MemAvailable"), 0) * 1024;
  const double limit =
      number_or(proc_value(files.cgroup + "/memory.max", ""), kUnlimited);  // a number or "max"
  if (limit == kUnlimited) return bytes;
  const double used = number_or(proc_value(files.cgroup + "/memory.current", ""), 0);
  const double cached = number_or(proc_value(files.cgroup + "/memory.stat", "inactive_file"), 0);
  return std::clamp(limit - std::max(0.0, used - cached), 0.0, bytes);
}

DeviceLimits this_cpu(int threads) {
  const double hertz = number_or(proc_value("/proc/cpuinfo", "cpu MHz"), kAssumedHertz / 1e6) * 1e6;
  std::string name = proc_value("/proc/cpuinfo", "model name");
  return {.name = name.empty() ? "cpu" : name,
          .kind = DeviceKind::cpu,
          .flops_per_second = {{Precision::fp32, threads * hertz * flops_per_cycle()}},
          .bytes_per_second = kAssumedBytesPerSecond,
          .memory_bytes = available_bytes(),
          .in_host_memory = true,
          .threads = threads,
          .source = "threads x clock x vector width; bandwidth assumed"};
}

}  // namespace plumb::cpu
