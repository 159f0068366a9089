#include "results/explain/explain.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/error.h"
#include "base/shallow_json.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/whole_file.h"
#include "results/record/profile.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

using enum StepCategory;
constexpr double kMicroseconds = 1e6, kNanosecondsPerMicrosecond = 1e3;

// Microseconds of one of our steps.
ByCategory<double> our_step(const RunRecord& record, const RunProfile& profile) {
  ByCategory<double> time{};
  double stamped = 0;
  for (const ProfiledKind& kind : profile.kinds) {
    time[index_of(category_of_instruction(kind.name))] += kind.seconds;
    stamped += kind.seconds;
  }
  for (double& part : time) part *= stamped > 0 ? profile.busy_seconds / stamped * kMicroseconds : 0;
  double waiting = std::max(0.0, profile.iteration_seconds - profile.busy_seconds) * kMicroseconds;
  const auto take = [&](StepCategory category, double seconds) {
    const double part = std::clamp(seconds * kMicroseconds, 0.0, waiting);
    time[index_of(category)] += part;
    waiting -= part;
  };
  take(communication, record.exposed_communication_seconds);
  take(data, record.data_wait_seconds);
  time[index_of(gaps)] += waiting;
  return time;
}

double microseconds_of_step(std::int64_t nanoseconds, const FrameworkTrace& trace) {
  return static_cast<double>(nanoseconds) / static_cast<double>(trace.steps) / kNanosecondsPerMicrosecond;
}

void move_time(ByCategory<double>& time, StepCategory from, StepCategory to) {
  time[index_of(to)] += time[index_of(from)];
  time[index_of(from)] = 0;
}

// How the trace's run differs; a property that the trace doesn't name counts as equal.
std::vector<Difference> differences_of(const RunRecord& record, const FrameworkTrace& trace) {
  const Json& told = trace.description;
  Configuration theirs;
  theirs.model = value_or<std::string>(told, "model");
  theirs.precision = value_or<std::string>(told, "precision");
  theirs.batch_per_device = value_or<std::int64_t>(told, "batch_per_device");
  theirs.image_size = value_or<std::int64_t>(told, "image_size");
  const Configuration ours = configuration_of(record);
  if (ours.classes != 0) theirs.classes = value_or<std::int64_t>(told, "classes");
  std::vector<Difference> list = differences(ours, theirs, false);
  const std::int64_t ranks = value_or<std::int64_t>(told, "world_size");
  if (ranks != 0 && ranks != record.world_size)
    list.push_back({"ranks", std::to_string(record.world_size), std::to_string(ranks)});
  const std::string device = trace.on_gpu ? "cuda" : "cpu";
  if (device != record.device) list.push_back({"device", record.device, device});
  return list;
}

std::string framework_of(const Json& told) {
  const std::string name = value_or<std::string>(told, "framework"),
                    version = value_or<std::string>(told, "version");
  if (name.empty()) return "framework";
  return fmt::format("{} {}{}", name, version.substr(0, version.find('+')),
                     told.value("compiled", Json()) == true ? ", compiled" : "");
}

// Times that a step can have: no NaN, nothing negative, no year.
void check_times(const RunProfile& profile, const RunRecord& record, const std::string& origin) {
  constexpr double kLongestSeconds = 1e6;
  for (const double time : {profile.iteration_seconds, profile.busy_seconds,
                            record.exposed_communication_seconds, record.data_wait_seconds})
    if (!(time >= 0 && time <= kLongestSeconds))
      throw Error(ExitCode::bad_data, "{} has a time of {:f} s; run again with --profile", origin, time);
}

// 1234567 -> "1234.567", in milliseconds; with a sign if wanted.
std::string milliseconds(std::int64_t microseconds, bool sign = false) {
  const double value = static_cast<double>(microseconds) / 1e3;
  return sign ? fmt::format("{:+.3f}", value) : fmt::format("{:.3f}", value);
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// "PyTorch's step takes 12.3 ms more (41 %), the largest part in norm (+6.1 ms)."
std::string verdict(const Explanation& explanation) {
  const std::int64_t difference = explanation.theirs - explanation.ours;
  const auto size = [&](const ExplainedRow& row) {
    return difference < 0 ? -row.difference() : row.difference();
  };
  const auto largest = std::ranges::max_element(explanation.rows, {}, size);
  if (difference == 0 || largest == explanation.rows.end()) return "Both steps take the same time.\n";
  return fmt::format("{}: a step takes {} ms {} ({:.0f} %), the largest part in {} ({} ms).\n",
                     explanation.framework, milliseconds(std::abs(difference)),
                     difference > 0 ? "more" : "less", 100 * share(std::abs(difference), explanation.ours),
                     key_of(largest->category), milliseconds(largest->difference(), true));
}

std::string notes(const Explanation& explanation) {
  std::string text;
  if (explanation.merged_backward)
    text += "Convolutions: the trace does not separate gradients of data and of weights.\n";
  text +=
      "Norm: Plumbline's norms include the activation and the addition after them; add up norm and "
      "elementwise.\n";
  for (const auto& [name, time] : explanation.unassigned)
    text += fmt::format("Unassigned: {} ms in {}\n", milliseconds(time), name.substr(0, 60));
  if (explanation.run_step_seconds)
    text += fmt::format(
        "Without stamps and profiler: Plumbline's step took {} ms, the framework's as its log says.\n",
        milliseconds(std::llround(*explanation.run_step_seconds * kMicroseconds)));
  return text;
}

// As JSON has them.
struct ComparedSeconds {
  double ours = 0, theirs = 0, difference = 0;
  static void fields(auto& self, auto&& each) {
    each("ours", self.ours), each("theirs", self.theirs), each("difference", self.difference);
  }
};
struct UnassignedTime {
  std::string name;
  double seconds = 0;
  static void fields(auto& self, auto&& each) { each("name", self.name), each("seconds", self.seconds); }
};
struct OtherSide {
  std::string what, ours, theirs;
  static void fields(auto& self, auto&& each) {
    each("what", self.what), each("ours", self.ours), each("theirs", self.theirs);
  }
};

double seconds_of(std::int64_t microseconds) {
  return static_cast<double>(microseconds) / kMicroseconds;
}

}  // namespace

Explanation explain(const RunRecord& record, const RunProfile& profile, const FrameworkTrace& trace) {
  Explanation result{.configuration = configuration_text(configuration_of(record)),
                     .framework = framework_of(trace.description),
                     .differences = differences_of(record, trace),
                     .on_gpu = trace.on_gpu,
                     .traced_steps = trace.steps,
                     .run_step_seconds = profile.run_step_seconds};
  ByCategory<double> ours = our_step(record, profile), theirs{};
  for (std::size_t i = 0; i < kStepCategories; ++i) theirs[i] = microseconds_of_step(trace.time[i], trace);
  const double step = std::accumulate(theirs.begin(), theirs.end(), 0.0);
  result.merged_backward = theirs[index_of(conv_backward)] > kUntoldShare * step;
  if (result.merged_backward) {
    for (ByCategory<double>* side : {&ours, &theirs})
      for (const StepCategory half : {conv_backward_data, conv_backward_weights})
        move_time(*side, half, conv_backward);
  } else {
    move_time(theirs, conv_backward, unassigned);
  }
  for (std::size_t i = 0; i < kStepCategories; ++i) {
    const ExplainedRow row{static_cast<StepCategory>(i), std::llround(ours[i]), std::llround(theirs[i])};
    result.ours += row.ours;
    result.theirs += row.theirs;
    if (row.ours != 0 || row.theirs != 0 || row.category == gaps || row.category == unassigned)
      result.rows.push_back(row);
  }
  for (const auto& [name, time] : trace.unassigned)
    result.unassigned.emplace_back(name, std::llround(microseconds_of_step(time, trace)));
  return result;
}

Explanation explain_run(const fs::path& run_folder, const fs::path& trace) {
  if (std::error_code error; !fs::exists(run_folder / "result.json", error))
    throw Error(ExitCode::bad_data, "'{}' has no result.json; pass the folder of one run with --profile",
                run_folder.string());
  const RunRecord record = read_result_file(run_folder / "result.json").record;
  const fs::path file = run_folder / "profile.json";
  const Json json = parse_shallow_json(read_whole_file(file, {.remedy = "pass a run with --profile"}));
  const std::string origin = file.string();
  RunProfile profile;
  fields::read_all(ops_reader(json, origin, kProfileFormat), profile);
  check_times(profile, record, run_folder.string());
  return explain(record, profile, read_framework_trace(trace));
}

std::string explanation_text(const Explanation& explanation) {
  std::string text = explanation.configuration + "\n";
  if (!explanation.differences.empty())
    text += fmt::format("DIFFERENT: {}\n", differences_text(explanation.differences));
  text += fmt::format("ms of a step; the framework's: mean of {} steps{}\n\n", explanation.traced_steps,
                      explanation.on_gpu ? " of its GPU" : "");
  std::vector<TextRow> rows{{"", "Plumbline", explanation.framework, "difference"}};
  const auto add = [&](std::string_view name, std::int64_t ours, std::int64_t theirs) {
    rows.push_back(
        {std::string(name), milliseconds(ours), milliseconds(theirs), milliseconds(theirs - ours, true)});
  };
  for (const ExplainedRow& row : explanation.rows) add(key_of(row.category), row.ours, row.theirs);
  add("step", explanation.ours, explanation.theirs);
  text += padded_table(rows, "lr");
  return text + "\n" + verdict(explanation) + notes(explanation);
}

void ExplainedRow::fields(auto& self, auto&& each) {
  each("name", std::string(key_of(self.category))), each("ours_seconds", seconds_of(self.ours));
  each("theirs_seconds", seconds_of(self.theirs));
  each("difference_seconds", seconds_of(self.difference()));
}

void Explanation::fields(auto& self, auto&& each) {
  std::vector<OtherSide> differences;
  for (const Difference& one : self.differences) differences.push_back({one.what, one.first, one.second});
  std::vector<UnassignedTime> unassigned;
  for (const auto& [name, time] : self.unassigned) unassigned.push_back({name, seconds_of(time)});
  each("configuration", self.configuration), each("framework", self.framework);
  each("differences", differences), each("traced_steps", self.traced_steps);
  each("step_seconds",
       ComparedSeconds{seconds_of(self.ours), seconds_of(self.theirs), seconds_of(self.theirs - self.ours)});
  each("categories", self.rows);
  each("unassigned_share", share(self.rows.empty() ? 0 : self.rows.back().theirs, self.theirs),
       Field{"of the framework's step"});
  each("unassigned", unassigned, Field{"the framework's, by name"});
  each("run_step_seconds", self.run_step_seconds,
       Field{.about = "of our run without stamps", .null_if_nothing = true});
}

const Document kExplainDocument = document_of<Explanation>(
    "plumbline.explain/1", "A step of ours and of a framework, part by part: plumbline explain --json.");

Json explanation_json(const Explanation& explanation) {
  return document_json(kExplainDocument.name, explanation);
}

}  // namespace plumb
