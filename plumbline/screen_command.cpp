// `plumbline screen`: every device alone, then all at once, with the same short work.
#include <cstdio>
#include <string>
#include <vector>

#include "base/console/print.h"
#include "base/console/progress.h"
#include "base/machine/host_addresses.h"
#include "launch/hosts/ask_hosts.h"
#include "launch/hosts/device_runs.h"
#include "plumbline/command.h"

namespace plumb {
namespace {

struct ScreenArguments {
  HostArguments hosts;
  ScreenWork work;
  std::string gpu;
  bool here = false, json = false;
};

OptionTable screen_options(ScreenArguments& arguments) {
  return {"plumbline screen",
          "Runs the same short training on every device alone, then on all at once, and finds the devices "
          "that are slow (5 % and 3.5 robust standard deviations more time per image than their kind) or "
          "compute other bits. Exit code 0: none is slow; 1: some are; 69: a host or device has no result.",
          {host_options(arguments.hosts),
           screen_work_options(arguments.work),
           {"Output",
            {flag_option("--json", arguments.json, true, "print one JSON object instead of the table"),
             flag_option("--here", arguments.here, true,
                         "run on one device of this host and print its result.json as one line")
                 .internal(),
             text_option("--gpu", "UUID", arguments.gpu, "with --here: the device; without it the CPUs")
                 .internal()}}},
          {"plumbline screen # the devices of this host", "plumbline screen -H node[1-4] # of a cluster",
           "plumbline screen -H node[1-4] --seconds 30 -- --bs 256 --fp16 # by your own work"}};
}

int screen_hosts(const ScreenArguments& arguments) {
  auto [hosts, user] = named_hosts(arguments.hosts);
  const HostTransport transport = hosts.empty() ? HostTransport{} : transport_of(arguments.hosts, user);
  if (hosts.empty()) hosts = {own_host()};
  const std::vector<ReferenceSpeed> references = reference_speeds(arguments.work.reference);
  const HostQuestions questions{.program = screened_program(arguments.work),
                                .log_folder = temporary_folder()};
  const std::vector<HostAnswer> answers =
      ask_hosts(hosts, arguments.hosts, transport, questions, nullptr, SignalWatch());
  std::vector<ScreenedDevice> devices = screened_devices(answers);
  const auto usable = std::ranges::count(devices, "", &ScreenedDevice::failure);
  ProgressBar bar(stderr, terminal_of(stderr), (usable > 2 ? 3 : 2) * usable, 1, "runs/s");
  const double start = wall_seconds();
  DeviceRuns runs(
      arguments.work, references, transport, answers, static_cast<std::size_t>(arguments.hosts.most_at_once),
      [&](std::size_t ended) { bar.update(static_cast<std::int64_t>(ended), wall_seconds() - start); });
  runs.alone(devices);
  runs.together(devices);
  if (devices.size() > 2) runs.compare_bits(devices);
  bar.clear();
  const ScreenReport report = judge_devices(hosts, std::move(devices));
  print_text(arguments.json ? json_text(screen_json(report)) : screen_text(report));
  return static_cast<int>(report.exit_code());
}

int screen_command(const ScreenArguments& arguments) {
  return arguments.here ? print_run_here(arguments.work, arguments.gpu) : screen_hosts(arguments);
}

}  // namespace

const Command kScreenCommand =
    make_command("screen", "find slow devices, alone and all at once", screen_options, screen_command);

}  // namespace plumb
