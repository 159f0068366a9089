// How fast devices are that should be alike, each alone and all at once: plumbline screen.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "results/published/reference.h"
#include "results/record/schema.h"

namespace plumb {

// One short run on one device.
struct ScreenRun {
  double images_per_second = 0;
  double share_of_median = 0;  // of devices of that name; judge_devices() sets it
  double reference = 0;        // images/s that such a device reached with the same work; 0: none is known
  // From NVML; 0 and empty without it.
  double sm_clock_mhz = 0, temperature_celsius = 0;  // median, largest
  std::string throttle_reasons;                      // "power cap 83 %"
  static void fields(auto& self, auto&& each) {
    each("images_per_second", self.images_per_second);
    each("share_of_median", self.share_of_median, Field{"of the devices of its name"});
    each("reference_images_per_second", self.reference,
         Field{.about = "that such a device reached with the same work", .written = self.reference > 0});
    each("sm_clock_mhz", self.sm_clock_mhz, Field{.about = "median", .written = self.sm_clock_mhz > 0});
    each("temperature_celsius", self.temperature_celsius,
         Field{.about = "largest", .written = self.temperature_celsius > 0});
    each("throttle_reasons", self.throttle_reasons, Field{.written = !self.throttle_reasons.empty()});
  }
};
ScreenRun screen_run_of(const RunRecord& record, const std::vector<ReferenceSpeed>& references);

// What a short deterministic run with a fixed seed computed; empty: there was none.
struct ComputedBits {
  std::vector<double> losses;
  std::vector<TensorChecksum> after_run, after_first;  // of all iterations, and of a run of one iteration
  std::string failure;                                 // why there was none
};

// A device whose losses or tensors are not, to the bit, those of most devices of its name.
struct OddBits {
  std::size_t device = 0;     // index
  std::size_t iteration = 0;  // the first one whose loss differs; their number: only tensors do
  double loss = 0, usual = 0;
  // "layer2.0.conv1.weight's gradient": the first that differs after one iteration, in backward's order.
  // Empty: none does.
  std::string tensor;
  static void fields(auto& self, auto&& each) {
    each("device", self.device, Field{"index", 0});
    each("iteration", self.iteration, Field{"the first one that differs", 0});
    each("loss", self.loss), each("usual", self.usual, Field{"of most devices of its name"});
    each("tensor", self.tensor, Field{.about = "the first that differs", .written = !self.tensor.empty()});
  }
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
  static void fields(auto& self, auto&& each) {
    const bool is_gpu = !self.gpu.empty();
    each("host", self.host), each("name", self.name);
    each("gpu", self.gpu, Field{.about = "UUID", .written = is_gpu});
    each("index", self.index, Field{.about = "of the GPU on its host", .written = is_gpu});
    each("alone", self.alone), each("together", self.together);
    each("losses", self.bits.losses,
         Field{.about = "of a short deterministic run", .written = !self.bits.losses.empty()});
    each("failure", self.failure, Field{.about = "why a run is missing", .written = !self.failure.empty()});
  }
};

struct SlowDevice {
  std::size_t device = 0;      // index
  bool alone = false;          // slow alone, else only with the others at work
  double share_of_median = 0;  // its images per second
  static void fields(auto& self, auto&& each) {
    each("device", self.device, Field{"index", 0});
    each("when", std::string(self.alone ? "alone" : "together"), Field{"alone or together"});
    each("share_of_median", self.share_of_median);
  }
};

struct ScreenReport {
  std::vector<ScreenedDevice> devices;  // fastest first by the runs alone; those without a run last
  std::vector<SlowDevice> slow;
  std::vector<OddBits> odd;
  std::vector<std::string> hosts, excluded;  // excluded: with a slow or odd device or one without a run
  bool was_judged = false;                   // some kind has enough devices to tell a slow one
  // Of speed alone, in the kind that varies most; 0: none was judged.
  double smallest_loss_shown = 0;
  std::vector<std::string> kept_hosts() const;
  // Devices that vary more hide slow ones.
  bool can_tell() const { return was_judged && smallest_loss_shown <= 0.15; }
  // ok; regression (1) with slow or odd devices; unavailable with devices or hosts without a run.
  ExitCode exit_code() const;
  static void fields(auto& self, auto&& each);
};

// By majority: without one among three or more devices of a name nothing is said.
std::vector<OddBits> find_odd_bits(const std::vector<ScreenedDevice>& devices);
std::string odd_text(const OddBits& odd, const std::vector<ScreenedDevice>& devices);
// "n7 GPU 3", or the host of CPUs.
std::string device_text(const ScreenedDevice& device);

// `hosts`: all that were to be screened, in their order. Fewer than three devices of a name can't tell which
// one is odd.
ScreenReport judge_devices(const std::vector<std::string>& hosts, std::vector<ScreenedDevice> devices);

// The table, a line for each slow or failed device, and what to leave out, for mpirun and Slurm.
std::string screen_text(const ScreenReport& report);
nlohmann::ordered_json screen_json(const ScreenReport& report);
nlohmann::ordered_json screen_schema();

}  // namespace plumb
