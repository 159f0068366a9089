#include "bench/output/profile.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "kernels/program/roofline.h"
#include "results/record/profile.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

double seconds_of(const InstructionTime& time) {
  return std::max(0.0, time.end - time.begin);
}

const char* bound_of(const Work& work, double roofline, const DeviceLimits& limits, Precision precision) {
  if (work.macs == 0 && work.bytes == 0) return "-";
  if (roofline < kLatencySeconds) return "latency";
  return roofline > roofline_seconds({.bytes = work.bytes}, limits, precision) ? "compute" : "bandwidth";
}

// Fills in what is known of the instruction, and what follows from the profile's seconds.
void hold_against_roofline(ProfiledInstruction& profile, const Instruction& instruction,
                           const DeviceLimits& limits, Precision precision) {
  profile.name = instruction.name;
  profile.kind = instruction.kind();
  profile.phase = name_of(instruction.phase);
  profile.lane = name_of(instruction.lane);
  profile.engine = instruction.engine;
  profile.workspace_bytes = instruction.workspace_bytes;
  profile.tuned_seconds = instruction.tuned_seconds;
  if (profile.seconds > 0) {
    profile.flops_per_second = 2 * instruction.work.macs / profile.seconds;
    profile.bytes_per_second = instruction.work.bytes / profile.seconds;
  }
  if (instruction.lane != Lane::compute) return;
  profile.roofline_seconds = roofline_seconds(instruction.work, limits, precision);
  if (profile.seconds > 0) profile.roofline_share = profile.roofline_seconds / profile.seconds;
  profile.bound_by = bound_of(instruction.work, profile.roofline_seconds, limits, precision);
}

// Span and busy time of the lanes that compute in one iteration. Stamped instructions run one at a time.
struct LaneTime {
  double span = 0, busy = 0;
};
LaneTime compute_time(const Program& program, std::span<const InstructionTime> iteration) {
  LaneTime time;
  double first = HUGE_VAL, last = -HUGE_VAL;
  for (const InstructionTime& instruction : iteration) {
    if (program.instructions[instruction.instruction].lane != Lane::compute) continue;
    first = std::min(first, instruction.begin);
    last = std::max(last, instruction.end);
    time.busy += seconds_of(instruction);
  }
  time.span = std::max(0.0, last - first);
  return time;
}

// The iterations of middle length, a third of them and at least one: their mean isn't drawn by a late one,
// and the means of parts add up to that of the whole, which medians don't.
std::vector<std::span<const InstructionTime>> middle_third(
    const Program& program, std::vector<std::span<const InstructionTime>> iterations) {
  std::ranges::stable_sort(iterations, {}, [&](std::span<const InstructionTime> iteration) {
    return compute_time(program, iteration).span;
  });
  const auto cut = std::ssize(iterations) / 3;
  return {iterations.begin() + cut, iterations.end() - cut};
}

std::vector<ProfiledKind> totals(const std::vector<ProfiledInstruction>& instructions,
                                 std::string ProfiledInstruction::*name) {
  std::map<std::string, ProfiledKind> by_name;
  for (const ProfiledInstruction& instruction : instructions) {
    if (instruction.lane != kComputeLane) continue;
    ProfiledKind& total = by_name[instruction.*name];
    total.name = instruction.*name;
    ++total.instructions;
    total.seconds += instruction.seconds;
    total.roofline_seconds += instruction.roofline_seconds;
  }
  std::vector<ProfiledKind> sorted;
  for (const auto& [key, total] : by_name) sorted.push_back(total);
  std::ranges::stable_sort(sorted, std::greater{}, &ProfiledKind::seconds);
  return sorted;
}

std::vector<InstructionId> collectives_of(const Program& program) {
  std::vector<InstructionId> ids;
  for (InstructionId id = 0; id < program.instructions.size(); ++id)
    if (program.instructions[id].as<Collective>()) ids.push_back(id);
  return ids;
}

}  // namespace

std::vector<std::span<const InstructionTime>> split_iterations(std::span<const InstructionTime> times) {
  std::vector<std::span<const InstructionTime>> iterations;
  std::vector<bool> seen;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (seen.size() <= times[i].instruction) seen.resize(times[i].instruction + 1, false);
    if (seen[times[i].instruction]) {
      iterations.push_back(times.subspan(begin, i - begin));
      begin = i;
      seen.assign(seen.size(), false);
    }
    seen[times[i].instruction] = true;
  }
  if (begin < times.size()) iterations.push_back(times.subspan(begin));
  return iterations;
}

RunProfile make_profile(const Program& program, std::span<const InstructionTime> times,
                        const DeviceLimits& limits, Precision precision,
                        std::optional<double> run_step_seconds) {
  RunProfile profile{.device = limits.name,
                     .peak_flops_per_second = peak_flops_per_second(limits, precision),
                     .peak_bytes_per_second = limits.bytes_per_second,
                     .precision = std::string(name_of(precision)),
                     .run_step_seconds = run_step_seconds};
  const std::vector<std::span<const InstructionTime>> iterations = split_iterations(times);
  profile.iterations = std::ssize(iterations);
  if (iterations.empty()) return profile;
  std::vector<bool> seen(program.instructions.size(), false);
  std::vector<ProfiledInstruction> by_id(program.instructions.size());
  for (const InstructionTime& time : times) {
    ProfiledInstruction& instruction = by_id.at(time.instruction);
    const double seconds = seconds_of(time);
    instruction.min_seconds = seen[time.instruction] ? std::min(instruction.min_seconds, seconds) : seconds;
    instruction.max_seconds = std::max(instruction.max_seconds, seconds);
    seen[time.instruction] = true;
  }
  const std::vector<std::span<const InstructionTime>> averaged = middle_third(program, iterations);
  profile.averaged_iterations = std::ssize(averaged);
  const double weight = 1 / static_cast<double>(averaged.size());
  for (const std::span<const InstructionTime> iteration : averaged) {
    profile.iteration_seconds += weight * compute_time(program, iteration).span;
    profile.busy_seconds += weight * compute_time(program, iteration).busy;
    for (const InstructionTime& time : iteration)
      by_id[time.instruction].seconds += weight * seconds_of(time);
  }
  profile.gap_seconds = profile.iteration_seconds - profile.busy_seconds;
  profile.step_seconds = profile.busy_seconds;
  for (InstructionId id = 0; id < program.instructions.size(); ++id) {
    if (!seen[id]) continue;
    const Instruction& instruction = program.instructions[id];
    hold_against_roofline(by_id[id], instruction, limits, precision_of(program, instruction, precision));
    if (instruction.lane == Lane::compute && profile.busy_seconds > 0)
      by_id[id].share = by_id[id].seconds / profile.busy_seconds;
    profile.roofline_seconds += by_id[id].roofline_seconds;
    profile.instructions.push_back(by_id[id]);
  }
  profile.phases = totals(profile.instructions, &ProfiledInstruction::phase);
  profile.kinds = totals(profile.instructions, &ProfiledInstruction::kind);
  return profile;
}

std::vector<double> collective_seconds(const Program& program, std::span<const InstructionTime> times) {
  std::vector<double> medians;
  for (const InstructionId id : collectives_of(program)) {
    std::vector<double> seconds;
    for (const InstructionTime& time : times)
      if (time.instruction == id) seconds.push_back(seconds_of(time));
    medians.push_back(seconds.empty() ? 0 : median(seconds));
  }
  return medians;
}

std::vector<CollectiveRecord> collective_records(const Program& program, std::span<const double> seconds) {
  const std::vector<InstructionId> ids = collectives_of(program);
  std::vector<CollectiveRecord> records;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Instruction& instruction = program.instructions[ids[i]];
    const Collective& collective = *instruction.as<Collective>();
    std::vector<double> of_ranks;
    for (std::size_t at = i; at < seconds.size(); at += ids.size()) of_ranks.push_back(seconds[at]);
    records.push_back(collective_record(instruction.name, std::string(name_of(collective.kind)),
                                        static_cast<std::int64_t>(collective.bytes()), of_ranks));
  }
  return records;
}

}  // namespace plumb
