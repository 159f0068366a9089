// The events of a profiler's trace in Chrome's format (PyTorch's), as much of them as the sorting of time
// needs: a compact record each, whatever the size of the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "results/explain/step_categories.h"

namespace plumb {

// Nanoseconds since an origin that only the trace knows.
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
