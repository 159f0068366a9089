#include "kernels/cpu/limits.h"

#include <string>

#include "base/machine/limits.h"

namespace plumb::cpu {
namespace {

constexpr double kAssumedBytesPerSecond = 25e9;  // two DDR4-3200 channels at about half of their 51.2 GB/s
constexpr double kAssumedHertz = 2.5e9;          // if cpuinfo has no clock

double flops_per_cycle() {
  if (__builtin_cpu_supports("avx512f")) return 64;
  if (__builtin_cpu_supports("avx2")) return 32;
  return 8;
}

}  // namespace

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
