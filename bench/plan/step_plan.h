// From options to the plan of a training step: the one way that runs, dry runs, the search for the largest
// batch, tables of heads and sweeps share.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "bench/options/options.h"
#include "kernels/describe.h"
#include "kernels/memory_plan.h"
#include "kernels/program.h"
#include "kernels/targets.h"
#include "models/graph.h"

namespace plumb {

struct StepPlan {
  Graph graph;
  DescribeOptions described_with;
  Program program;  // with its collectives, if has_collectives()
  MemoryPlan memory;
  // The arena and, on a CPU, the copies of parameters that lie beside it while start values are handed out
  // and while a run is checked.
  double needed_bytes = 0;
};

// What a device adds to the description, before collectives and memory: nothing in a dry run.
struct Preparation {
  std::vector<PlainLayer> plain;  // DescribeOptions::plain, as Device::tune() found them
  // Chooses engines and layouts (Device::prepare).
  std::function<void(const Graph& graph, Program& program)> prepare;
};

// The step of rank `rank` of `world_size`; ranks differ where they share out class centres. `options`:
// resolved. Throws Error(usage) for options that make no network or that the device can't do.
StepPlan make_step_plan(const BenchOptions& options, const DeviceLimits& limits, int rank, int world_size,
                        const Preparation& preparation = {});

// The largest batch per device whose step, as described, needs at most `memory_bytes`; 0 if 1 needs more.
std::int64_t largest_planned_batch(const BenchOptions& options, const DeviceLimits& limits, int rank,
                                   int world_size, double memory_bytes);

// Keys of memory_bytes in JSON, and their bytes, in the order in which they are shown.
std::vector<std::pair<const char*, std::size_t>> memory_parts(const MemoryBytes& memory);

}  // namespace plumb
