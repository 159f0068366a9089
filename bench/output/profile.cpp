#include "bench/output/profile.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "kernels/roofline.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

double seconds_of(const InstructionTime& time) {
  return std::max(0.0, time.end - time.begin);
}

Bound bound_of(const Work& work, double roofline, const DeviceLimits& limits, Precision precision) {
  if (work.macs == 0 && work.bytes == 0) return Bound::nothing;
  if (roofline < kLatencySeconds) return Bound::latency;
  return roofline > roofline_seconds({.bytes = work.bytes}, limits, precision) ? Bound::compute
                                                                               : Bound::bandwidth;
}

InstructionProfile profile_instruction(const Instruction& instruction, InstructionId id,
                                       const std::vector<double>& seconds, const DeviceLimits& limits,
                                       Precision precision) {
  InstructionProfile profile{.instruction = id, .seconds = median(seconds)};
  profile.min_seconds = std::ranges::min(seconds);
  profile.max_seconds = std::ranges::max(seconds);
  if (profile.seconds > 0) {
    profile.flops_per_second = 2 * instruction.work.macs / profile.seconds;
    profile.bytes_per_second = instruction.work.bytes / profile.seconds;
  }
  if (instruction.lane != Lane::compute) return profile;
  profile.roofline_seconds = roofline_seconds(instruction.work, limits, precision);
  if (profile.seconds > 0) profile.roofline_share = profile.roofline_seconds / profile.seconds;
  profile.bound = bound_of(instruction.work, profile.roofline_seconds, limits, precision);
  return profile;
}

// Span and busy time of the compute lane in one iteration. Its instructions run one after the other.
struct LaneTime {
  double span = 0, busy = 0;
};
LaneTime compute_time(const Program& program, std::span<const InstructionTime> iteration) {
  LaneTime time;
  double first = 0, last = 0;
  bool any = false;
  for (const InstructionTime& instruction : iteration) {
    if (program.instructions[instruction.instruction].lane != Lane::compute) continue;
    first = any ? std::min(first, instruction.begin) : instruction.begin;
    last = any ? std::max(last, instruction.end) : instruction.end;
    any = true;
    time.busy += seconds_of(instruction);
  }
  time.span = last - first;
  return time;
}

std::vector<ProfileTotal> totals(const Program& program, const std::vector<InstructionProfile>& instructions,
                                 std::string_view (*name_of_instruction)(const Instruction&)) {
  std::map<std::string, ProfileTotal> by_name;
  for (const InstructionProfile& profile : instructions) {
    const Instruction& instruction = program.instructions[profile.instruction];
    if (instruction.lane != Lane::compute) continue;
    ProfileTotal& total = by_name[std::string(name_of_instruction(instruction))];
    ++total.instructions;
    total.seconds += profile.seconds;
    total.roofline_seconds += profile.roofline_seconds;
  }
  std::vector<ProfileTotal> sorted;
  for (auto& [name, total] : by_name) {
    total.name = name;
    sorted.push_back(total);
  }
  std::ranges::stable_sort(sorted, std::greater{}, &ProfileTotal::seconds);
  return sorted;
}

}  // namespace

std::string_view name_of(Bound bound) {
  static constexpr std::array kNames{"-", "compute", "bandwidth", "latency"};
  return kNames[static_cast<std::size_t>(bound)];
}

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

Profile make_profile(const Program& program, std::span<const InstructionTime> times,
                     const DeviceLimits& limits, Precision precision) {
  Profile profile{.device = limits.name,
                  .precision = precision,
                  .peak_flops_per_second = peak_flops_per_second(limits, precision),
                  .peak_bytes_per_second = limits.bytes_per_second};
  std::vector<double> spans, busy, gaps;
  for (const std::span<const InstructionTime> iteration : split_iterations(times)) {
    const LaneTime time = compute_time(program, iteration);
    spans.push_back(time.span);
    busy.push_back(time.busy);
    gaps.push_back(std::max(0.0, time.span - time.busy));
  }
  profile.iterations = spans.size();
  if (spans.empty()) return profile;
  profile.iteration_seconds = median(spans);
  profile.busy_seconds = median(busy);
  profile.gap_seconds = median(gaps);

  std::vector<std::vector<double>> seconds(program.instructions.size());
  for (const InstructionTime& time : times) seconds.at(time.instruction).push_back(seconds_of(time));
  for (InstructionId id = 0; id < program.instructions.size(); ++id) {
    if (seconds[id].empty()) continue;
    const Precision of_instruction = precision_of(program, program.instructions[id], precision);
    profile.instructions.push_back(
        profile_instruction(program.instructions[id], id, seconds[id], limits, of_instruction));
    profile.roofline_seconds += profile.instructions.back().roofline_seconds;
    if (program.instructions[id].lane == Lane::compute)
      profile.step_seconds += profile.instructions.back().seconds;
  }
  for (InstructionProfile& instruction : profile.instructions)
    if (program.instructions[instruction.instruction].lane == Lane::compute && profile.step_seconds > 0)
      instruction.share = instruction.seconds / profile.step_seconds;
  profile.phases = totals(program, profile.instructions,
                          [](const Instruction& instruction) { return name_of(instruction.phase); });
  profile.kinds = totals(program, profile.instructions,
                         [](const Instruction& instruction) { return instruction.kind(); });
  return profile;
}

}  // namespace plumb
