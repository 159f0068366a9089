// --list-targets: the figures that plans and rooflines of named devices are made with.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/targets.h"

namespace plumb {

// One line per device with its memory, bandwidth and peaks, and one with their source; at most 100 columns.
std::string targets_text(const std::vector<DeviceLimits>& targets);
// A list of objects: name, kind, memory_bytes, bytes_per_second, flops_per_second by precision (null where
// the device lacks it), compute_capability, source.
nlohmann::ordered_json targets_json(const std::vector<DeviceLimits>& targets);

}  // namespace plumb
