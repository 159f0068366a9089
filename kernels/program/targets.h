// Peak figures of known devices, for planning without a device present.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

enum class DeviceKind { cpu, cuda };
std::string_view name_of(DeviceKind kind);

// fp16 and bf16: mixed precision. Storage and products in half precision; masters, statistics, losses in
// fp32.
enum class Precision { fp32, tf32, fp16, bf16 };
std::string_view name_of(Precision precision);

struct DeviceLimits {
  std::string name;  // "h200", or the device's own name
  DeviceKind kind = DeviceKind::cpu;
  // Sustained rates of large products and long streams, for rooflines. Precisions missing here are
  // unsupported.
  std::map<Precision, double> flops_per_second;
  double bytes_per_second = 0;  // main memory
  double memory_bytes = 0;      // usable by one process
  bool in_host_memory = false;  // which then holds start values and copies for checks as well
  int compute_capability = 0;   // 90 for sm_90; 0 for a CPU
  int threads = 1;              // of a CPU: of oneDNN and our own loops
  // CPU only: floats per vector in its Winograd loops (kernels/program/winograd.h), or 0 if it has none.
  int winograd_lanes = 0;
  std::string source;  // source of the figures
};

// Properties that a GPU reports.
struct GpuProperties {
  std::string name;  // "NVIDIA H200"
  int compute_capability = 0;
  int multiprocessors = 0;
  double clock_hz = 0;                 // multiprocessors' boost clock
  double memory_bytes_per_second = 0;  // nominal; 0 if unknown
  double memory_bytes = 0;             // free for this process
};
// Peaks of the target that has this name in NVIDIA's driver, else from multiprocessors and clock.
DeviceLimits limits_of(const GpuProperties& gpu);

const std::vector<DeviceLimits>& targets();
// By name, or by its first words: "v100" is the first of "v100-16gb" and "v100-32gb".
std::optional<DeviceLimits> find_target(std::string_view name);

}  // namespace plumb
