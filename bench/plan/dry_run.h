// --dry-run: the memory, work, traffic and roofline time of a training step, from its plan alone.
// --list-targets: the devices that it can be planned for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/options/options.h"
#include "kernels/program/targets.h"

namespace plumb {

// Totals, memory, phases and the longest instructions for people, at most 100 columns wide. With --json an
// object of dry_run_schema(). Throws Error(usage) if the device lacks the precision.
std::string answer_dry_run(const BenchOptions& asked);

// The devices, with their memory, bandwidth, peaks, and the source of these; at most 100 columns.
std::string targets_text(const std::vector<DeviceLimits>& targets);
nlohmann::ordered_json targets_json(const std::vector<DeviceLimits>& targets);

nlohmann::ordered_json dry_run_schema();
nlohmann::ordered_json targets_schema();

}  // namespace plumb
