// From options to the plan of a training step: the one way that runs and dry runs share.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/options/options.h"
#include "kernels/device.h"
#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "kernels/program/program.h"
#include "kernels/program/targets.h"
#include "kernels/program/tuning.h"
#include "models/graph.h"

namespace plumb {

struct StepPlan {
  Graph graph;
  DescribeOptions described_with;
  UpdateRule rule;
  Program program;  // with its collectives, if has_collectives()
  MemoryPlan memory;
  // The arena and, on a CPU, the copies of parameters that exist next to it while start
  // values are handed out and while a run is checked.
  double needed_bytes = 0;
};

// The step of rank `rank` of `world_size`; ranks differ where they share out class centers. `options`:
// resolved. `device`: chooses engines, layouts and workspaces, according to `tuning`; if null, the step
// stays as described. Throws Error(usage) for options that make no network or that the device can't do.
StepPlan make_step_plan(const BenchOptions& options, const DeviceLimits& limits, int rank, int world_size,
                        const Tuning& tuning = {}, Device* device = nullptr);

// For --verbose: the ops of each kind by engine, and the layers whose fused engine isn't used.
std::string engines_text(const StepPlan& plan);

// The largest batch per device, up to kMaxBatch, whose step as described needs at most `memory_bytes`; 0 if 1
// needs more.
std::int64_t largest_planned_batch(const BenchOptions& options, const DeviceLimits& limits, int rank,
                                   int world_size, double memory_bytes, const Tuning& tuning = {});

// Keys of memory_bytes in JSON, and their bytes, in the order in which they are shown.
std::vector<std::pair<const char*, std::size_t>> memory_parts(const StepPlan& plan);

// program.json, for the simulator, the report and for people:
// {"format", "arena_bytes",
//  "buffers": [{"name", "role", "dtype", "dims", "bytes", "offset", ["persistent": true],
//               ["sharded": true], ["view": {"of": index, "offset": bytes}]}],
//  "ops": [{"name", "kind", "phase", "lane", "uses": [{"buffer": index, "access": "r"|"w"|"rw"}],
//             "workspace_bytes", "macs", "bytes", ["collective": {"kind", "buffer", "elements", "dtype"}]}]}
nlohmann::ordered_json program_json(const StepPlan& plan);

// This rank's class centers, of a model with a margin head: "501 of 1001 class centers, 50 in a step".
std::string shard_text(const Graph& graph);

}  // namespace plumb
