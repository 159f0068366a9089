#include "absent_gpu.h"

#include <nlohmann/json.hpp>

namespace plumb::cuda {

AbsentGpu v100() {
  return {.name = "Tesla V100-SXM2-16GB",
          .target = "v100-16gb",
          .multiprocessors = 80,
          .shared_bytes_per_block = 96 << 10,
          .shared_bytes_reserved = 0,
          .threads_per_multiprocessor = 2048,
          .blocks_per_multiprocessor = 32,
          .clock_khz = 1530000,
          .memory_clock_khz = 877000,
          .l2_bytes = 6L << 20};
}

AbsentGpu t4() {
  return {.name = "Tesla T4",
          .target = "t4",
          .multiprocessors = 40,
          .shared_bytes_per_block = 64 << 10,
          .shared_bytes_reserved = 0,
          .threads_per_multiprocessor = 1024,
          .blocks_per_multiprocessor = 16,
          .clock_khz = 1590000,
          .memory_clock_khz = 5001000,
          .l2_bytes = 4L << 20};
}

AbsentGpu a100() {
  return {.name = "NVIDIA A100-SXM4-80GB",
          .target = "a100-80gb",
          .multiprocessors = 108,
          .shared_bytes_per_block = 163 << 10,
          .shared_bytes_reserved = 1 << 10,
          .threads_per_multiprocessor = 2048,
          .blocks_per_multiprocessor = 32,
          .clock_khz = 1410000,
          .memory_clock_khz = 1593000,
          .l2_bytes = 40L << 20};
}

AbsentGpu l40s() {
  return {.name = "NVIDIA L40S",
          .target = "a100-40gb",
          .multiprocessors = 142,
          .shared_bytes_per_block = 99 << 10,
          .shared_bytes_reserved = 1 << 10,
          .threads_per_multiprocessor = 1536,
          .blocks_per_multiprocessor = 24,
          .clock_khz = 2520000,
          .memory_clock_khz = 9001000,
          .l2_bytes = 96L << 20,
          .compute_capability = 89};
}

AbsentGpu h200() {
  return {.name = "NVIDIA H200",
          .target = "h200",
          .multiprocessors = 132,
          .shared_bytes_per_block = 227 << 10,
          .shared_bytes_reserved = 1 << 10,
          .threads_per_multiprocessor = 2048,
          .blocks_per_multiprocessor = 32,
          .clock_khz = 1980000,
          .memory_clock_khz = 3201000,
          .l2_bytes = 60L << 20};
}

AbsentGpu b200() {
  return {.name = "NVIDIA B200",
          .target = "h200",
          .multiprocessors = 148,
          .shared_bytes_per_block = 227 << 10,
          .shared_bytes_reserved = 1 << 10,
          .threads_per_multiprocessor = 2048,
          .blocks_per_multiprocessor = 32,
          .clock_khz = 1965000,
          .memory_clock_khz = 3996000,
          .l2_bytes = 126L << 20,
          .compute_capability = 100};
}

DeviceLimits AbsentGpu::limits() const {
  DeviceLimits limits = *find_target(target);
  limits.compute_capability = compute_capability.value_or(limits.compute_capability);
  return limits;
}

std::string AbsentGpu::properties_json() const {
  const DeviceLimits device = limits();
  return nlohmann::json{{"deviceName", name},
                        {"deviceVer", device.compute_capability * 10},  // 900 is 9.0
                        {"driverVer", 13000},
                        {"cudaDeviceId", 0},
                        {"pciDeviceId", 1},
                        {"isTccDriver", 0},
                        {"supportCoopLaunch", 1},
                        {"multiProcessorCount", multiprocessors},
                        {"warpSize", 32},
                        {"maxGridSize", {2147483647, 65535, 65535}},
                        {"maxBlockSize", {1024, 1024, 64}},
                        {"maxThreadsPerBlock", 1024},
                        {"maxThreadsPerSM", threads_per_multiprocessor},
                        {"maxCtasPerSM", blocks_per_multiprocessor},
                        {"regsPerBlock", 65536},
                        {"maxRegistersPerSM", 65536},
                        {"maxSharedMemoryPerBlock", 48 << 10},
                        {"maxSharedMemoryPerBlockOptin", shared_bytes_per_block},
                        {"reservedSharedMemoryPerBlock", shared_bytes_reserved},
                        {"totalGlobalMem", static_cast<std::int64_t>(device.memory_bytes)},
                        {"l2CacheSize", l2_bytes},
                        {"smClockRateKHz", clock_khz},
                        {"memClockRateKHz", memory_clock_khz}}
      .dump();
}

}  // namespace plumb::cuda
