// The steps that plumbline screen, check and accept share: each adds its checks to the verdict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/console/progress.h"
#include "base/process/this_process.h"
#include "launch/hosts/ask_hosts.h"
#include "launch/hosts/device_runs.h"
#include "launch/verdict/host_checks.h"

namespace plumb {

struct HostSteps {
  // `terminal`: shows the step that runs.
  HostSteps(ScreenWork work_of_devices, const Terminal& terminal);

  // These hosts instead of this one. Throws Error if there is no way to them.
  void set_hosts(const HostArguments& arguments, const std::vector<std::string>& hosts);
  void ask();
  void judge_facts();
  // Each device of the hosts that passed so far alone, then all at once if `together`. Devices that seem slow
  // run again, because a burst of other work is not a fault; all of them do if they vary too much to tell.
  void judge_devices(double run_seconds, bool together);
  // Where seconds count: several devices at once only, each one time.
  void judge_devices_once(double run_seconds);

  // An allreduce between all GPUs of each host that passed so far, on all hosts at once. A host with one GPU
  // has none.
  void judge_insides(double patience_seconds);

  std::vector<HostAnswer> good_answers() const;
  bool has_gpus() const;
  int devices_per_host() const;  // GPUs of the host with the fewest; 1: CPUs
  const Expectation* expected() const { return expectation ? &*expectation : nullptr; }
  void show(const std::string& step) { line.draw(step); }

  ScreenWork work;
  std::optional<Expectation> expectation;
  bool asks_others = false;  // whether the package's other programs are asked for their builds
  HostArguments host_arguments;
  HostTransport transport;
  LiveLine line;
  SignalWatch signals;
  Verdict verdict;
  std::vector<HostAnswer> answers;
  std::vector<ScreenedDevice> devices;
  std::vector<InsideOfHost> insides;

 private:
  DeviceRuns runs(double run_seconds);
  void run_alone(DeviceRuns& runs);
  void judge(DeviceRuns& runs);
  std::vector<std::string> slow_hosts() const;

  BusyHosts busy_;
};

}  // namespace plumb
