// Where the time of an iteration goes: every instruction's time beside the least that it can take on the
// device.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/program/program.h"
#include "kernels/program/targets.h"
#include "results/record/profile.h"
#include "results/record/schema.h"

namespace plumb {

// A kernel that does nothing takes 2 to 3 µs between events on GPUs from Volta to Hopper, and a parallel
// region on tens of CPU threads a few µs.
inline constexpr double kLatencySeconds = 3e-6;

// Times in the order in which they were stamped, cut where an instruction comes again.
std::vector<std::span<const InstructionTime>> split_iterations(std::span<const InstructionTime> times);

// `times`: of whole iterations of `program`. Throws Error(usage) if the device lacks the precision.
// An instruction is bound by the larger of FLOPs ÷ peak and bytes ÷ bandwidth; or, if even that is under
// kLatencySeconds, by the latency of starting it at all.
RunProfile make_profile(const Program& program, std::span<const InstructionTime> times,
                        const DeviceLimits& limits, Precision precision,
                        std::optional<double> run_step_seconds = {});

// Totals, phases, kinds, and the `shown` instructions that lose most against the roofline; at most 100
// columns.
std::string profile_text(const RunProfile& profile, std::size_t shown = 20);

// profile.json: the profile, with its format.
nlohmann::ordered_json profile_json(const RunProfile& profile);

// trace.json, for chrome://tracing and ui.perfetto.dev (Trace Event Format: complete events "X", times in
// microseconds from the first instruction): one process for rank 0, one thread for each lane and one for
// whole iterations. An instruction that was enqueued during another one is shown from the end of that one.
// `device`: one line for people.
std::string trace_text(const Program& program, std::span<const InstructionTime> times,
                       const std::string& device);

// One rank's: seconds from start to end of each collective, its median over the iterations of `times`, in the
// order of the Program; 0 for one that was not stamped.
std::vector<double> collective_seconds(const Program& program, std::span<const InstructionTime> times);

// `seconds`: collective_seconds() of every rank, one rank behind the other. Nothing without collectives.
std::vector<CollectiveRecord> collective_records(const Program& program, std::span<const double> seconds);

}  // namespace plumb
