// The memory, work, traffic and roofline time of a training step, from its plan alone, and the devices that
// it can be planned for.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/plan/step_plan.h"
#include "kernels/program/memory_plan.h"
#include "kernels/program/program.h"
#include "kernels/program/targets.h"
#include "results/record/links.h"
#include "results/simulation/collective_cost.h"

namespace plumb {

// The exchange of a step over links that are only asked about.
struct PredictedExchange {
  Layout layout;
  Link link;           // of a node to others
  double seconds = 0;  // of all collectives, one after the other
  std::optional<double>
      exposed_seconds;  // in which compute waits; nothing: its head is shared out over ranks
};

struct DryRunInstruction {
  std::string name;
  Phase phase = Phase::forward;
  Lane lane = Lane::compute;
  double macs = 0, bytes = 0;
  double roofline_seconds = 0;  // 0 on other lanes, which run beside compute
};

struct DryRun {
  std::string model, target;
  Precision precision = Precision::fp32;
  std::int64_t batch_per_device = 0;
  int world_size = 1;
  std::int64_t parameters = 0, macs_per_image = 0;            // without class centers
  std::int64_t head_parameters = 0, head_macs_per_image = 0;  // class centers; 0: none
  MemoryBytes memory;
  double device_memory_bytes = 0;
  bool fits = false;               // StepPlan::needed_bytes are at most device_memory_bytes
  std::int64_t largest_batch = 0;  // per device; 0: not even one image fits
  double roofline_seconds = 0;     // per step: the sum over `instructions`
  double bandwidth_share = 0;      // part of roofline_seconds that memory bandwidth sets, 0 … 1
  double traffic_bytes = 0;        // sent per step and rank
  std::vector<DryRunInstruction> instructions;
  std::optional<PredictedExchange> exchange;  // over the links that were asked about
};

// Seconds of all collectives of the program, one after the other.
double modeled_exchange_seconds(const Program& program, const CollectiveCost& cost);

// Rings as results/simulation/collective_cost.h has them, over `link` alone: links within a node count as
// faster. What is exposed is simulated, with `instruction_seconds` for each instruction of the plan.
PredictedExchange predict_exchange(const StepPlan& plan, std::span<const double> instruction_seconds,
                                   Layout layout, const Link& link);

// One for each instruction.
std::vector<double> roofline_seconds(const DryRun& run);

// `plan`: of the step that would run on `limits`; `largest_batch`: largest_planned_batch(). Throws
// Error(usage) if the device lacks the precision.
DryRun dry_run(const StepPlan& plan, const DeviceLimits& limits, Precision precision, int world_size,
               std::int64_t largest_batch);

// One object with the keys parameters, macs_per_image, memory_bytes, target, fits, largest_batch,
// roofline_seconds, traffic_bytes and instructions, beside what was asked for. memory_bytes.peak is null:
// nothing ran. With DryRun::exchange also {"exchange": {"nodes", "devices_per_node", "bytes_per_second",
// "latency_seconds", "seconds", "exposed_seconds"}}, the last one null where it isn't simulated.
nlohmann::ordered_json to_json(const DryRun& run);
// Totals, memory, phases and the longest instructions for people, at most 100 columns wide.
std::string to_text(const DryRun& run);

// --list-targets: the figures that plans and rooflines of named devices are made with.
// One line per device with its memory, bandwidth and peaks, and one with their source; at most 100 columns.
std::string targets_text(const std::vector<DeviceLimits>& targets);
// A list of objects: name, kind, memory_bytes, bytes_per_second, flops_per_second by precision (null where
// the device lacks it), compute_capability, source.
nlohmann::ordered_json targets_json(const std::vector<DeviceLimits>& targets);

}  // namespace plumb
