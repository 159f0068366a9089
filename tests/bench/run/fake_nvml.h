// A stand-in for NVML, loaded as a shared object: one GPU whose readings depend on the number of queries. It
// answers to several names, including those of emulated GPUs.
#pragma once

#include <atomic>
#include <cstdint>

namespace plumb {

struct FakeNvml {
  int init_answer = 0;                     // nvmlReturn_t; 9: the driver isn't loaded
  int starts = 0, ends = 0;                // calls of nvmlInit_v2 and nvmlShutdown
  std::atomic<int> readings = 0;           // power queries: one per sample
  int throttled_from = 1'000'000'000;      // first reading with the reasons below
  std::uint64_t throttle_reasons = 0x4;    // software power cap
  unsigned throttled_sm_clock_mhz = 1200;  // else 1980
  unsigned power_milliwatts = 500'000;
  std::uint64_t millijoules_per_reading = 2000;  // energy counter, if present
};

inline constexpr const char* kFakeGpu = "GPU-fa4e0000-0000-0000-0000-000000000001";
inline constexpr const char* kEmulatedGpus = "GPU-656d756c";  // how their UUIDs begin: "emul"

}  // namespace plumb

// The script that controls the library; found with dlsym.
extern "C" plumb::FakeNvml* fake_nvml();
