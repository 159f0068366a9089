// The steps of `plumbline accept`: from host names to a verdict.
#pragma once

#include <optional>
#include <string>

#include "launch/hosts/ask_hosts.h"
#include "launch/hosts/device_runs.h"

namespace plumb {

struct AcceptArguments {
  HostArguments hosts;
  ScreenWork work;
  std::string expect, against, device, save_expect, output;
  std::optional<double> link;  // GB/s
  double budget_minutes = 10;
  bool resume = false, dry_run = false, json = false, quiet = false;
};

// Runs all steps, writes their files and prints the verdict. Returns the exit code: 0, 1 or 2 as the verdict
// has it, 69 if no device could be measured. Throws Error.
int accept_hosts(const AcceptArguments& arguments);

}  // namespace plumb
