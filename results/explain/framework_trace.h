// A framework's profiler trace, sorted: how much of a training step goes into what.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "results/explain/step_categories.h"

namespace plumb {

struct FrameworkTrace {
  bool on_gpu = false;     // GPU kernels were sorted, else operators of the CPU
  std::size_t steps = 0;   // over which the times below are sums
  std::int64_t total = 0;  // ns; of the steps
  // ns, with the sum `total`: every instant of a step counts once. If several things run, computation counts
  // before communication, communication before data, and those before unassigned time; within a class the one
  // that began first.
  ByCategory<std::int64_t> time{};
  std::int64_t hidden_communication = 0;  // ns in which communication ran beside something else that counted
  std::vector<std::pair<std::string, std::int64_t>>
      unassigned;                      // names and ns, the longest first, at most 10
  nlohmann::ordered_json description;  // of the run, as results/peers wrote it into the trace; null without
};

// The outermost of nested operators that has a rule counts, with all that it calls. Kernels get their
// category from their own name if it names the operation ("dgrad"), else from the operator that launched
// them, else from their form. A step on a GPU goes from its first kernel to the next step's first; the last
// one is left out, unless it is the only one. Throws Error(bad_data), which names the file, if it can't be
// read (trace_events.h), there are no steps, or nothing in them.
FrameworkTrace read_framework_trace(const std::filesystem::path& file);

}  // namespace plumb
