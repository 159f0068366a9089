// Where a framework loses: its profiler's trace and our own profile, step beside step, by what time goes
// into.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/analysis/configuration.h"
#include "results/explain/framework_trace.h"
#include "results/record/profile.h"
#include "results/record/schema.h"

namespace plumb {

// Microseconds of one step. What is printed is made of these whole numbers, so that columns and rows add up
// to the last digit.
struct ExplainedRow {
  StepCategory category = StepCategory::unassigned;
  std::int64_t ours = 0, theirs = 0;
  std::int64_t difference() const { return theirs - ours; }
  static void fields(auto& self, auto&& each);
};

struct Explanation {
  std::string configuration;            // of our run, for people
  std::string framework = "framework";  // "PyTorch 2.4", if the trace says so
  std::vector<Difference> differences;  // of the two runs, as far as the trace tells
  bool on_gpu = false;
  std::size_t traced_steps = 0;
  std::int64_t ours = 0, theirs = 0;  // µs; a step as our profile and as the trace have it: sums of the rows
  std::vector<ExplainedRow> rows;  // what either has, and gaps and unassigned, in the order of StepCategory
  bool merged_backward = false;    // convolutions' gradients of data and weights stand in one row
  std::vector<std::pair<std::string, std::int64_t>> unassigned;  // the framework's, by name, µs
  std::optional<double> run_step_seconds;                        // of our run, which nobody stamped
  static void fields(auto& self, auto&& each);
};

// Our step is an iteration of the compute lane as it was stamped: its busy time is shared out among
// categories like the medians of their steps, the rest is waiting for collectives and batches, as much as the
// run had of it, and gaps. Theirs is the mean of the traced steps. Where more than kUntoldShare of the
// framework's step is a backward convolution that doesn't say of what, both sides have one row for data and
// weights; less than that is unassigned.
inline constexpr double kUntoldShare = 0.01;
Explanation explain(const RunRecord& record, const RunProfile& profile, const FrameworkTrace& trace);

// From files. Throws Error(bad_data): `run_folder` has no result.json or profile.json, the trace can't be
// sorted.
Explanation explain_run(const fs::path& run_folder, const fs::path& trace);

std::string explanation_text(const Explanation& explanation);
Json explanation_json(const Explanation& explanation);
extern const Document kExplainDocument;

}  // namespace plumb
