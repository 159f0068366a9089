#include "kernels/cpu/limits.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace plumb::cpu {
namespace {

constexpr double kAssumedBytesPerSecond = 25e9;  // two DDR4-3200 channels at about half of their 51.2 GB/s
constexpr double kAssumedHertz = 2.5e9;          // where cpuinfo has no clock

// The value of the first line of `path` that starts with `key`, after ':' where there is one; empty if none.
std::string field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    const std::size_t start =
        line.find_first_not_of(" \t", colon == std::string::npos ? key.size() : colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

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

double available_bytes() {
  constexpr double kUnlimited = std::numeric_limits<double>::max();
  double bytes = number_or(field("/proc/meminfo", "MemAvailable"), 0) * 1024;
  const double limit = number_or(field("/sys/fs/cgroup/memory.max", ""), kUnlimited);
  const double used = number_or(field("/sys/fs/cgroup/memory.current", ""), 0);
  if (limit < kUnlimited) bytes = std::min(bytes, limit - used);
  return std::max(bytes, 0.0);
}

}  // namespace

int available_cpus() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return 1;
  return std::max(1, CPU_COUNT(&mask));
}

DeviceLimits this_cpu(int threads) {
  const double hertz = number_or(field("/proc/cpuinfo", "cpu MHz"), kAssumedHertz / 1e6) * 1e6;
  std::string name = field("/proc/cpuinfo", "model name");
  return {.name = name.empty() ? "cpu" : name,
          .kind = DeviceKind::cpu,
          .flops_per_second = {{Precision::fp32, threads * hertz * flops_per_cycle()}},
          .bytes_per_second = kAssumedBytesPerSecond,
          .memory_bytes = available_bytes(),
          .source = "threads x clock x vector width; bandwidth assumed"};
}

}  // namespace plumb::cpu
