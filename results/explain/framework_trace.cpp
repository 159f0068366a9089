#include "results/explain/framework_trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

#include "base/error.h"

namespace plumb {
namespace {

using enum StepCategory;

struct CategorizedTime {
  TimeSpan time;
  StepCategory category = unassigned;
  std::string name;
};

bool says_something(const std::optional<StepCategory>& category) {
  return category && *category != gaps;
}

struct SortedOperators {
  // Those that a rule fits, and those that none fits and that are in none of these.
  std::vector<CategorizedTime> outermost;
  std::vector<const OperatorEvent*> launchers;  // of kernels, by id
};

// A walk over the operators of each thread, outer ones first.
SortedOperators sort_operators(std::vector<OperatorEvent>& operators) {
  std::ranges::stable_sort(operators, [](const OperatorEvent& a, const OperatorEvent& b) {
    return std::tie(a.thread, a.time.begin, b.time.end) < std::tie(b.thread, b.time.begin, a.time.end);
  });
  SortedOperators sorted;
  std::vector<const OperatorEvent*> open;  // each inside the one before; `category` is settled
  for (OperatorEvent& event : operators) {
    while (!open.empty() &&
           (open.back()->thread != event.thread || open.back()->time.end <= event.time.begin))
      open.pop_back();
    const bool inside =
        !open.empty() && says_something(open.back()->category) && event.time.end <= open.back()->time.end;
    if (inside)
      event.category = open.back()->category;
    else if (event.category != gaps)
      sorted.outermost.push_back({event.time, event.category.value_or(unassigned), event.name});
    if (event.id != 0) sorted.launchers.push_back(&event);
    open.push_back(&event);
  }
  std::ranges::sort(sorted.launchers, {}, &OperatorEvent::id);
  return sorted;
}

const OperatorEvent* launcher_of(const KernelEvent& kernel,
                                 const std::vector<const OperatorEvent*>& launchers) {
  const auto found = std::ranges::lower_bound(launchers, kernel.launched_by, {}, &OperatorEvent::id);
  return found != launchers.end() && (*found)->id == kernel.launched_by ? *found : nullptr;
}

StepCategory category_of(const KernelEvent& kernel, const OperatorEvent* launcher) {
  if (kernel.category) return *kernel.category;
  if (launcher && says_something(launcher->category)) return *launcher->category;
  return kernel.form.value_or(unassigned);
}

// Steps of the device, by the kernels that were launched in those of the host.
std::vector<TimeSpan> device_steps(const std::vector<TimeSpan>& host_steps,
                                   const std::vector<KernelEvent>& kernels,
                                   const std::vector<const OperatorEvent*>& launchers) {
  std::vector<TimeSpan> steps(host_steps.size(), {std::numeric_limits<std::int64_t>::max(), 0});
  for (const KernelEvent& kernel : kernels) {
    const OperatorEvent* launcher = launcher_of(kernel, launchers);
    if (!launcher) continue;
    const std::int64_t begin = launcher->time.begin;
    const auto after = std::ranges::upper_bound(host_steps, begin, {}, &TimeSpan::begin);
    if (after == host_steps.begin() || begin >= std::prev(after)->end) continue;
    TimeSpan& step = steps[static_cast<std::size_t>(after - host_steps.begin()) - 1];
    step.begin = std::min(step.begin, kernel.time.begin);
    step.end = std::max(step.end, kernel.time.end);
  }
  std::erase_if(steps, [](const TimeSpan& step) { return step.end == 0; });
  if (steps.empty()) return host_steps;
  std::ranges::sort(steps, {}, &TimeSpan::begin);
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) steps[i].end = steps[i + 1].begin;
  if (steps.size() > 1) steps.pop_back();
  return steps;
}

// Calls found(nanoseconds, interval that counts) for the parts of intervals inside the spans. Both by begin.
template <typename Found>
void sweep(const std::vector<CategorizedTime>& intervals, const std::vector<TimeSpan>& spans, Found found) {
  std::size_t span = 0;
  const auto count = [&](std::int64_t begin, std::int64_t end, const CategorizedTime& interval) {
    while (span < spans.size() && spans[span].end <= begin) ++span;
    for (std::size_t i = span; i < spans.size() && spans[i].begin < end; ++i)
      found(std::max<std::int64_t>(0, std::min(end, spans[i].end) - std::max(begin, spans[i].begin)),
            interval);
  };
  using Key = std::tuple<int, std::int64_t, std::size_t>;  // the smallest counts
  std::priority_queue<Key, std::vector<Key>, std::greater<>> active;
  std::int64_t now = 0;
  const auto advance = [&](std::int64_t until) {
    while (!active.empty()) {
      const CategorizedTime& interval = intervals[std::get<2>(active.top())];
      const std::int64_t end = interval.time.end;
      if (end > now) count(now, std::min(end, until), interval);
      if (end > until) break;
      now = std::max(now, end);
      active.pop();
    }
    now = until;
  };
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    advance(intervals[i].time.begin);
    const StepCategory category = intervals[i].category;
    const int rank = category == communication ? 1 : category == data ? 2 : category == unassigned ? 3 : 0;
    active.emplace(rank, intervals[i].time.begin, i);
  }
  advance(std::numeric_limits<std::int64_t>::max());
}

std::vector<std::pair<std::string, std::int64_t>> longest(
    const std::map<std::string, std::int64_t>& by_name) {
  constexpr std::size_t kMost = 10;
  std::vector<std::pair<std::string, std::int64_t>> list(by_name.begin(), by_name.end());
  std::ranges::stable_sort(list, std::greater<>(), &std::pair<std::string, std::int64_t>::second);
  list.resize(std::min(list.size(), kMost));
  return list;
}

}  // namespace

FrameworkTrace read_framework_trace(const std::filesystem::path& file) {
  const std::string origin = "trace " + file.string();
  TraceEvents events = read_trace_events(file, origin);
  std::vector<TimeSpan> steps = std::move(events.steps);
  if (steps.empty())
    throw Error(ExitCode::bad_data,
                "{} has no ProfilerStep marks; call the profiler's step() after each step of training, or "
                "use the scripts of results/peers",
                origin);
  SortedOperators sorted = sort_operators(events.operators);
  std::vector<CategorizedTime> intervals = std::move(sorted.outermost);
  FrameworkTrace trace;
  trace.on_gpu = !events.kernels.empty();
  trace.description = std::move(events.description);
  if (trace.on_gpu) {
    steps = device_steps(steps, events.kernels, sorted.launchers);
    intervals.clear();
    for (const KernelEvent& kernel : events.kernels)
      intervals.push_back(
          {kernel.time, category_of(kernel, launcher_of(kernel, sorted.launchers)), kernel.name});
  }
  std::ranges::stable_sort(intervals, {},
                           [](const CategorizedTime& interval) { return interval.time.begin; });

  trace.steps = steps.size();
  for (const TimeSpan& step : steps) trace.total += step.end - step.begin;
  std::map<std::string, std::int64_t> unknown;
  std::int64_t assigned = 0;
  sweep(intervals, steps, [&](std::int64_t time, const CategorizedTime& interval) {
    trace.time[index_of(interval.category)] += time;
    assigned += time;
    if (interval.category == unassigned) unknown[interval.name] += time;
  });
  if (assigned == 0 || trace.total == 0)
    throw Error(ExitCode::bad_data,
                "{} has steps without operators or kernels; let the profiler record CPU and CUDA", origin);
  trace.time[index_of(gaps)] = trace.total - assigned;
  trace.unassigned = longest(unknown);
  return trace;
}

}  // namespace plumb
