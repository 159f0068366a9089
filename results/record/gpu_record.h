// A GPU during the timed window: clocks and why they were low, temperature, power, energy. The "gpus"
// of result.json, one entry per rank whose GPU told it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results/record/object_reader.h"

namespace plumb {

// At one moment, `seconds` after the window began.
struct GpuMoment {
  double seconds = 0;
  double sm_clock_mhz = 0, memory_clock_mhz = 0, temperature_celsius = 0, power_watts = 0;
  bool throttled = false;
};

struct GpuRecord {
  int rank = 0;
  std::string name, id, driver_version;  // id: what Device::unique_id says
  double highest_sm_clock_mhz = 0;       // that it can have; 0: it doesn't tell
  double window_seconds = 0;
  std::int64_t samples = 0;
  ValueRange sm_clock_mhz, memory_clock_mhz, temperature_celsius, power_watts;
  // Why clocks were lower than they could be ("power cap", "thermal", …): the share of samples that say so.
  std::map<std::string, double> clock_reasons;
  double throttled_share = 0;    // of samples that name a reason by which the GPU is slower than it could be
  std::optional<double> joules;  // of the window
  std::string energy_source;     // "counter", or "power" where that was integrated for want of a counter
  std::vector<GpuMoment> moments;  // of rank 0's GPU; of others the figures above must do
};

// Moments are written as columns: {"seconds": […], "sm_clock_mhz": […], …}.
nlohmann::ordered_json to_json(const GpuRecord& record);
// Throws as ObjectReader does.
GpuRecord read_gpu_record(const ObjectReader& reader);

// Over all ranks' GPUs, each counted once however many ranks share it; nothing unless all `ranks` have one
// that tells its energy.
std::optional<double> total_joules(const std::vector<GpuRecord>& gpus, int ranks);

// "rank 3's GPU was throttled in 83 % of the window (power cap 83 %, thermal 2 %), SM clock 1410 to 1980 of
// 1980 MHz"; empty if it wasn't.
std::string throttling_text(const GpuRecord& record);

}  // namespace plumb
