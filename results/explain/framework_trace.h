// A framework's profiler trace, sorted: how much of a training step goes into what.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
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
// read (read_trace_events), there are no steps, or nothing in them.
FrameworkTrace read_framework_trace(const std::filesystem::path& file);

// The events of a profiler's trace in Chrome's format (PyTorch's), as much of them as the sorting of time
// needs: a compact record each, whatever the size of the file. Nanoseconds since an origin that only the
// trace knows.
struct TimeSpan {
  std::int64_t begin = 0, end = 0;
};

// An operator, or a mark around Python code ("Optimizer.step#SGD.step"), on the thread that ran it.
struct OperatorEvent {
  TimeSpan time;
  std::uint64_t thread = 0, id = 0;  // id: by which kernels name it; 0: none
  std::optional<StepCategory> category;
  std::uint32_t name = 0;  // index into TraceEvents::names
};

// A kernel or copy on a GPU.
struct KernelEvent {
  TimeSpan time;
  std::uint64_t launched_by = 0;  // OperatorEvent::id
  // By its name alone: what it computes; failing that, how.
  std::optional<StepCategory> category, form;
  std::uint32_t name = 0;
};

struct TraceEvents {
  std::vector<OperatorEvent> operators;
  std::vector<KernelEvent> kernels;
  std::vector<TimeSpan> steps;  // by begin: profiler.step() from one to the next
  std::vector<std::string> names;
  nlohmann::ordered_json description;  // what results/peers wrote into it; null without
};

// Streams `file`. Throws Error(bad_data), which begins with `origin`, if it can't be read, isn't JSON or ends
// too early, has no traceEvents, more than 20 million operators and kernels, or an event without a usable
// time.
TraceEvents read_trace_events(const std::filesystem::path& file, const std::string& origin);

}  // namespace plumb
