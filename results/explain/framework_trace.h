// A framework's profiler trace, sorted: how much of a training step goes into what.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumb {

// Categories of a step's time, with one table of names for each side: kinds of our ops, a framework's
// operators, its GPU kernels.
enum class StepCategory {
  conv_forward,
  conv_backward_data,
  conv_backward_weights,
  conv_backward,  // of data or weights: operators and kernels that don't say which
  norm,
  elementwise,  // activations, additions, dropout, copies, reductions
  dense,        // dense layers and other products of matrices
  pooling,
  loss,  // with all of a margin head but its products
  optimizer,
  communication,
  data,
  gaps,       // nothing runs
  unassigned  // something runs that no table knows
};
inline constexpr std::size_t kStepCategories = static_cast<std::size_t>(StepCategory::unassigned) + 1;

std::string_view key_of(StepCategory category);  // "conv_forward"

template <typename T>
using ByCategory = std::array<T, kStepCategories>;
constexpr std::size_t index_of(StepCategory category) {
  return static_cast<std::size_t>(category);
}

// The category of a step's kind (kernels/program/program.h: name_of(Operation)). Throws Error(bad_data) for
// an unknown kind.
StepCategory category_of_instruction(std::string_view kind);

// The category of an operator as PyTorch's profiler names it ("aten::mkldnn_convolution"), by the first rule
// that fits. `gaps`: it only calls others (nodes of autograd, compiled regions); its own time is Python's or
// the engine's. Nothing: no rule fits.
std::optional<StepCategory> category_of_operator(std::string_view name);

// The category of a GPU kernel or copy by its own name: by the operation in it, or by its form ("sgemm"),
// which counts if the operator that launched the kernel has no category.
std::optional<StepCategory> category_of_kernel(std::string_view name);
std::optional<StepCategory> category_of_kernel_form(std::string_view name);

struct FrameworkTrace {
  bool on_gpu = false;     // GPU kernels were sorted, else operators of the CPU
  std::size_t steps = 0;   // over which the times below are sums
  std::int64_t total = 0;  // ns; of the steps
  // ns, with the sum `total`: every instant of a step counts once. If several things run, computation counts
  // before communication, communication before data, and those before unassigned time; within a class the one
  // that began first.
  ByCategory<std::int64_t> time{};
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
  std::string name;  // of one without a category
};

// A kernel or copy on a GPU.
struct KernelEvent {
  TimeSpan time;
  std::uint64_t launched_by = 0;  // OperatorEvent::id
  // By its name alone: what it computes; failing that, how.
  std::optional<StepCategory> category, form;
  std::string name;  // of one without both
};

struct TraceEvents {
  std::vector<OperatorEvent> operators;
  std::vector<KernelEvent> kernels;
  std::vector<TimeSpan> steps;         // by begin: profiler.step() from one to the next
  nlohmann::ordered_json description;  // what results/peers wrote into it; null without
};

// Streams `file`. Throws Error(bad_data), which begins with `origin`, if it can't be read, isn't JSON or ends
// too early, has no traceEvents, or an event without a usable time.
TraceEvents read_trace_events(const std::filesystem::path& file, const std::string& origin);

}  // namespace plumb
