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
#include "results/record/schema.h"

namespace plumb {

// The bound of an instruction by its roofline: the larger of FLOPs ÷ peak and bytes ÷ bandwidth;
// or, if even that is under kLatencySeconds, starting it at all.
enum class Bound { nothing, compute, bandwidth, latency };
std::string_view name_of(Bound bound);

// A kernel that does nothing takes 2 to 3 µs between events on GPUs from Volta to Hopper, and a parallel
// region on tens of CPU threads a few µs.
inline constexpr double kLatencySeconds = 3e-6;

struct InstructionProfile {
  InstructionId instruction = 0;
  double seconds = 0;                       // mean over the iterations that are averaged
  double min_seconds = 0, max_seconds = 0;  // over all
  double share = 0;                         // of the time of all instructions that compute; 0 on other lanes
  double flops_per_second = 0;              // achieved, 2 FLOPs per multiply-accumulate
  double bytes_per_second = 0;              // of the bytes that can't be avoided
  double roofline_seconds = 0;
  double roofline_share = 0;  // roofline_seconds / seconds: 1 can't be beaten
  Bound bound = Bound::nothing;
  double lost_seconds() const { return seconds - roofline_seconds; }
};

// Several instructions that compute together.
struct ProfileTotal {
  std::string name;  // of the phase or the kind
  std::size_t instructions = 0;
  double seconds = 0, roofline_seconds = 0;
};

struct Profile {
  std::string device;
  Precision precision = Precision::fp32;
  double peak_flops_per_second = 0, peak_bytes_per_second = 0;
  std::size_t iterations = 0;           // that were stamped
  std::size_t averaged_iterations = 0;  // those of middle length: every time below is a mean over them
  // Lanes that compute: from the begin of its first instruction to the end of its last; in one of its
  // instructions, which is the sum of their seconds; in none of them.
  double iteration_seconds = 0, busy_seconds = 0, gap_seconds = 0;
  double roofline_seconds = 0;                   // sum over its instructions
  std::vector<InstructionProfile> instructions;  // that were stamped, of all lanes, by InstructionId
  std::vector<ProfileTotal> phases, kinds;       // the longest first
};

// Times in the order in which they were stamped, cut where an instruction comes again.
std::vector<std::span<const InstructionTime>> split_iterations(std::span<const InstructionTime> times);

// `times`: of whole iterations of `program`. Throws Error(usage) if the device lacks the precision.
Profile make_profile(const Program& program, std::span<const InstructionTime> times,
                     const DeviceLimits& limits, Precision precision);

// Totals, phases, kinds, and the `shown` instructions that lose most against the roofline; at most 100
// columns. `run_step_seconds`: median of the run's own iterations, without stamps.
std::string profile_text(const Program& program, const Profile& profile,
                         std::optional<double> run_step_seconds = {}, std::size_t shown = 20);

// profile.json: everything above, every instruction by name.
nlohmann::ordered_json profile_json(const Program& program, const Profile& profile,
                                    std::optional<double> run_step_seconds = {});

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

// One row per collective, at most 100 columns. Empty without collectives.
std::string collectives_text(std::span<const CollectiveRecord> collectives);

}  // namespace plumb
