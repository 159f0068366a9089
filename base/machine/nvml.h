// NVML, the library through which NVIDIA's driver tells what a GPU is doing. It comes with the driver, so it
// is loaded when a run wants it; only nvml_counters.cpp needs its header. Names and numbers: NVML API
// Reference Guide, "Device Queries" and "Clocks event reasons".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plumb {

// What the GPU did at one moment; 0 is what the driver doesn't tell.
struct NvmlReading {
  std::uint64_t reasons = 0;  // bits: why clocks are lower than they could be
  unsigned sm_clock_mhz = 0, memory_clock_mhz = 0;
  unsigned temperature_celsius = 0;
  unsigned power_milliwatts = 0;  // mean over the last second on most GPUs
};

// "power cap", "thermal", …; unknown bits are left out.
std::vector<std::string> reason_names(std::uint64_t reasons);
// Whether one of the reasons slows down a GPU that has work: power, temperature or the board.
bool is_throttled(std::uint64_t reasons);

// One GPU. Safe to use from one thread at a time.
struct NvmlGpu {
  std::string name, driver_version;
  unsigned highest_sm_clock_mhz = 0;
  std::function<NvmlReading()> read;  // allocates nothing
  // Since the driver was loaded; nothing on GPUs that don't count (before Volta).
  std::function<std::optional<std::uint64_t>()> energy_millijoules;
};

// The GPU with this UUID ("GPU-3f…"), read through `library`. Returns nullopt if the library is missing or
// can't start, or knows no such GPU: a run goes on without it.
std::optional<NvmlGpu> open_nvml_gpu(const std::string& uuid, const std::string& library);

// A GPU between runs; what the driver doesn't tell keeps its start value.
struct NvmlGpuState {
  std::string name, uuid;
  double memory_bytes = 0, used_bytes = 0;
  unsigned processes = 0;  // that compute on it
  NvmlReading reading;
  std::string ecc, mig;  // "on", "off", empty: it doesn't tell
  // uncorrected_errors (of ECC, since the driver was loaded), rows_uncorrected (memory rows remapped after
  // such errors), rows_pending (1: a reset will remap some), rows_failed (1: none is left), and of
  // add_nvml_counters. What the driver doesn't tell is not there.
  std::map<std::string, std::int64_t> counters;
};

struct NvmlSystem {
  std::string driver_version;
  int cuda_version = 0;  // the newest CUDA that the driver runs, 12080 for 12.8
  std::vector<NvmlGpuState> gpus;
};

// All GPUs of this host, in NVML's order. Nothing if there is no such library or driver.
std::optional<NvmlSystem> nvml_system(const std::string& library);

// Adds counters of the GPU (nvmlDevice_t): nvlinks, nvlinks_up, and sums of their errors
// (nvlink_{replay,recovery}_errors; from Blackwell on nvlink_recoveries_failed); fabric_unready (0 or 1, with
// NVSwitches); pcie_width now and pcie_generation_max; pages_{retired,pending}, before Ampere;
// recovery_action (nvmlDeviceGpuRecoveryAction_t). Needs structs of NVML's header: nothing in a build without
// it.
void add_nvml_counters(void* library, void* gpu, std::map<std::string, std::int64_t>& counters);

// Takes the library from the environment variable PLUMBLINE_NVML_LIBRARY, else the name under which drivers
// install it.
std::string nvml_library_name();

}  // namespace plumb
