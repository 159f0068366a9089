// How fast devices that should be alike are, each alone and all at once, and whether they compute the same.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results/published/reference.h"
#include "results/record/schema.h"

namespace plumb {

// Devices or hosts that can be compared: of fewer, none is known to be the odd one.
inline constexpr std::size_t kLeastAlike = 3;

// One short run on one device.
struct ScreenRun {
  double images_per_second = 0;
  double reference = 0;          // images/s that such a device reached with the same work; 0: none is known
  std::string throttle_reasons;  // "power cap 83 %"; empty without NVML
};
ScreenRun screen_run_of(const RunRecord& record, const std::vector<ReferenceSpeed>& references);

// What a short deterministic run with a fixed seed computed; empty: there was none.
struct ComputedBits {
  std::vector<double> losses;
  std::vector<TensorChecksum> tensors;  // after the last iteration
  std::string failure;                  // why there was none
};

// A device whose losses or tensors are not, to the bit, those of most devices of its name.
struct OddBits {
  std::size_t device = 0;     // index
  std::size_t iteration = 0;  // the first one whose loss differs; their number: only tensors do
  double loss = 0, usual = 0;
};

// A GPU, or a host's CPUs.
struct ScreenedDevice {
  std::string host;
  std::string gpu;   // UUID; empty: CPUs
  int index = -1;    // of the GPU on its host
  std::string name;  // "NVIDIA H100", the processor
  std::optional<ScreenRun> alone, together;
  ComputedBits bits;
  std::string failure;  // why a run is missing
};
using RunMember = std::optional<ScreenRun> ScreenedDevice::*;

// An allreduce between all GPUs of a host.
struct InsideOfHost {
  std::string host;
  double bytes_per_second = 0;  // bus bandwidth; 0: not measured
  bool sums_are_wrong = false;
  std::string failure;  // why it wasn't measured
};

// Devices of one name that have such a run.
struct DeviceKind {
  std::vector<const ScreenedDevice*> devices;
  double usual = 0;  // images/s, the median
  double slow = 0;   // below it a device is slow compared with the others
  double smallest_loss_shown = 0;

  bool was_judged() const { return devices.size() >= kLeastAlike; }
  // Devices that vary more hide slow ones.
  bool can_tell() const { return was_judged() && smallest_loss_shown <= 0.15; }
};
// By name. A slow device takes 5 % and 3.5 robust standard deviations more time per image than the median.
std::map<std::string, DeviceKind> kinds_of(const std::vector<ScreenedDevice>& devices, RunMember run);

// By majority: without one among three or more devices of a name nothing is said.
std::vector<OddBits> find_odd_bits(const std::vector<ScreenedDevice>& devices);
std::string odd_text(const OddBits& odd);
// "n7 GPU 3", or the host of CPUs.
std::string device_text(const ScreenedDevice& device);

}  // namespace plumb
