#include "bench/output/profile.h"

#include <algorithm>
#include <array>
#include <map>

#include "kernels/roofline.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

double seconds_of(const StepTime& time) {
  return std::max(0.0, time.end - time.begin);
}

Bound bound_of(const Work& work, double roofline, const DeviceLimits& limits, Precision precision) {
  if (work.macs == 0 && work.bytes == 0) return Bound::nothing;
  if (roofline < kLatencySeconds) return Bound::latency;
  return roofline > roofline_seconds({.bytes = work.bytes}, limits, precision) ? Bound::compute
                                                                               : Bound::bandwidth;
}

StepProfile profile_step(const Step& step, StepId id, const std::vector<double>& seconds,
                         const DeviceLimits& limits, Precision precision) {
  StepProfile profile{.step = id, .seconds = median(seconds)};
  const auto [shortest, longest] = std::minmax_element(seconds.begin(), seconds.end());
  profile.min_seconds = *shortest;
  profile.max_seconds = *longest;
  if (profile.seconds > 0) {
    profile.flops_per_second = 2 * step.work.macs / profile.seconds;
    profile.bytes_per_second = step.work.bytes / profile.seconds;
  }
  if (step.lane != Lane::compute) return profile;
  profile.roofline_seconds = roofline_seconds(step.work, limits, precision);
  if (profile.seconds > 0) profile.roofline_share = profile.roofline_seconds / profile.seconds;
  profile.bound = bound_of(step.work, profile.roofline_seconds, limits, precision);
  return profile;
}

// Span and busy time of the compute lane in one iteration. Its steps run one after the other.
struct LaneTime {
  double span = 0, busy = 0;
};
LaneTime compute_time(const Program& program, std::span<const StepTime> iteration) {
  LaneTime time;
  double first = 0, last = 0;
  bool any = false;
  for (const StepTime& step : iteration) {
    if (program.steps[step.step].lane != Lane::compute) continue;
    first = any ? std::min(first, step.begin) : step.begin;
    last = any ? std::max(last, step.end) : step.end;
    any = true;
    time.busy += seconds_of(step);
  }
  time.span = last - first;
  return time;
}

std::vector<ProfileTotal> totals(const Program& program, const std::vector<StepProfile>& steps,
                                 std::string_view (*name_of_step)(const Step&)) {
  std::map<std::string, ProfileTotal> by_name;
  for (const StepProfile& profile : steps) {
    const Step& step = program.steps[profile.step];
    if (step.lane != Lane::compute) continue;
    ProfileTotal& total = by_name[std::string(name_of_step(step))];
    ++total.steps;
    total.seconds += profile.seconds;
    total.roofline_seconds += profile.roofline_seconds;
  }
  std::vector<ProfileTotal> sorted;
  for (auto& [name, total] : by_name) {
    total.name = name;
    sorted.push_back(total);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ProfileTotal& a, const ProfileTotal& b) { return a.seconds > b.seconds; });
  return sorted;
}

}  // namespace

std::string_view name_of(Bound bound) {
  static constexpr std::array kNames{"-", "compute", "bandwidth", "latency"};
  return kNames[static_cast<std::size_t>(bound)];
}

std::vector<std::span<const StepTime>> split_iterations(std::span<const StepTime> times) {
  std::vector<std::span<const StepTime>> iterations;
  std::vector<bool> seen;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (seen.size() <= times[i].step) seen.resize(times[i].step + 1, false);
    if (seen[times[i].step]) {
      iterations.push_back(times.subspan(begin, i - begin));
      begin = i;
      seen.assign(seen.size(), false);
    }
    seen[times[i].step] = true;
  }
  if (begin < times.size()) iterations.push_back(times.subspan(begin));
  return iterations;
}

Profile make_profile(const Program& program, std::span<const StepTime> times, const DeviceLimits& limits,
                     Precision precision) {
  Profile profile{.device = limits.name,
                  .precision = precision,
                  .peak_flops_per_second = peak_flops_per_second(limits, precision),
                  .peak_bytes_per_second = limits.bytes_per_second};
  std::vector<double> spans, busy, gaps;
  for (const std::span<const StepTime> iteration : split_iterations(times)) {
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

  std::vector<std::vector<double>> seconds(program.steps.size());
  for (const StepTime& time : times) seconds.at(time.step).push_back(seconds_of(time));
  for (StepId id = 0; id < program.steps.size(); ++id) {
    if (seconds[id].empty()) continue;
    const Precision of_step = precision_of(program, program.steps[id], precision);
    profile.steps.push_back(profile_step(program.steps[id], id, seconds[id], limits, of_step));
    profile.roofline_seconds += profile.steps.back().roofline_seconds;
    if (program.steps[id].lane == Lane::compute) profile.step_seconds += profile.steps.back().seconds;
  }
  for (StepProfile& step : profile.steps)
    if (program.steps[step.step].lane == Lane::compute && profile.step_seconds > 0)
      step.share = step.seconds / profile.step_seconds;
  profile.phases = totals(program, profile.steps, [](const Step& step) { return name_of(step.phase); });
  profile.kinds = totals(program, profile.steps, [](const Step& step) { return step.kind(); });
  return profile;
}

}  // namespace plumb
