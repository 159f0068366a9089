// How fast devices are that should be alike, each alone and all at once: plumbline screen.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "results/record/schema.h"

namespace plumb {

// One short run on one device.
struct ScreenRun {
  double images_per_second = 0;
  // From NVML; 0 and empty without it.
  double sm_clock_mhz = 0, temperature_celsius = 0;  // median, largest
  std::string reasons;                               // why clocks were low: "power cap 83 %"
};
ScreenRun screen_run_of(const RunRecord& record);

// A GPU, or a host's CPUs.
struct ScreenedDevice {
  std::string host;
  std::string gpu;   // UUID; empty: CPUs
  int index = -1;    // of the GPU on its host
  std::string name;  // "NVIDIA H100", the processor
  std::optional<ScreenRun> alone, together;
  std::string failure;  // why a run is missing
};

struct SlowDevice {
  std::size_t device = 0;      // index
  bool alone = false;          // slow alone, else only with the others at work
  double share_of_median = 0;  // its images per second
};

struct ScreenReport {
  std::vector<ScreenedDevice> devices;  // fastest first by the runs alone; those without a run last
  std::vector<double> alone_shares,
      together_shares;  // of the median of devices of that name; 0 without a run
  std::vector<SlowDevice> slow;
  std::vector<std::string> hosts, excluded;  // excluded: with a slow device or one without a run
  bool was_judged = false;                   // some kind has enough devices to tell a slow one
};

// `hosts`: all that were to be screened, in their order. Devices are held against others of their name; fewer
// than three of a name can't tell which one is odd.
ScreenReport judge_devices(const std::vector<std::string>& hosts, std::vector<ScreenedDevice> devices);

// ok; regression (1) with slow devices; unavailable with devices or hosts without a run.
ExitCode screen_exit_code(const ScreenReport& report);

// The table, a line for each slow or failed device, and what to leave out, for mpirun and Slurm.
std::string screen_text(const ScreenReport& report);
// {"schema": "plumbline.screen/2", "exit_code", "devices", "slow", "excluded", "mpirun_hosts",
// "slurm_exclude"}
nlohmann::ordered_json screen_json(const ScreenReport& report);

}  // namespace plumb
