// Runs the same short training on devices of hosts, each alone or all at once: for screen, check and accept.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/options/option_table.h"
#include "launch/hosts/ask_hosts.h"
#include "launch/hosts/screening.h"
#include "results/published/reference.h"

namespace plumb {

struct ScreenWork {
  std::string program;               // empty: bench_resnet50 next to this program
  std::vector<std::string> options;  // of the program; empty: a short step that fits the device
  double seconds = 5;                // least length of a run
  double run_timeout_seconds = 300;
};

// OPTION… behind --, --program, --seconds and --run-timeout-s.
OptionGroup screen_work_options(ScreenWork& work);

// The program's path. Throws Error(usage) for options that screening gives itself.
std::string screened_program(const ScreenWork& work);

// A shell command that removes Slurm's and PMI's variables. With them, MPI would take a process in a step of
// srun for one of Slurm's ranks.
inline constexpr const char* kWithoutScheduler =
    R"(unset $(env | sed -n 's/^\(SLURM_[A-Za-z0-9_]*\|PMI[A-Za-z0-9_]*\)=.*/\1/p'))";

// What CPUs run where no options are given.
std::vector<std::string> small_cpu_step();

// The folder for temporary files. Throws Error(cannot_create) if TMPDIR is none.
std::string temporary_folder();

// GPUs, or a host's CPUs without GPUs or CUDA. Every host has answered.
std::vector<ScreenedDevice> screened_devices(const std::vector<HostAnswer>& hosts);

class DeviceRuns {
 public:
  DeviceRuns(ScreenWork work, HostTransport transport, std::vector<HostAnswer> hosts,
             std::size_t most_at_once)
      : work_(std::move(work)),
        transport_(std::move(transport)),
        hosts_(std::move(hosts)),
        most_at_once_(most_at_once) {}

  // Devices without a failure, one of each host at a time. A device that has a run alone keeps the faster
  // one.
  void alone(std::vector<ScreenedDevice>& devices);
  void alone(std::vector<ScreenedDevice>& devices, const std::vector<std::size_t>& indices);
  // All devices without a failure at once.
  void together(std::vector<ScreenedDevice>& devices);
  // All at once, a few deterministic iterations from the same seed: fills their bits.
  void compare_bits(std::vector<ScreenedDevice>& devices);

 private:
  using Keep = std::function<void(ScreenedDevice& device, const RunRecord& record)>;
  void run(const ScreenWork& work, std::vector<ScreenedDevice>& devices,
           const std::vector<std::size_t>& indices, std::size_t at_once, const Keep& keep);
  ScreenWork bits_work() const;
  CommandWords command_for(ScreenWork work, const ScreenedDevice& device) const;

  ScreenWork work_;
  std::vector<ReferenceSpeed> references_ = reference_speeds();
  HostTransport transport_;
  std::vector<HostAnswer> hosts_;
  std::size_t most_at_once_;
  SignalWatch signals_;
};

}  // namespace plumb
