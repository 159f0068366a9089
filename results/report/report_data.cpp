#include "results/report/report_data.h"

#include <algorithm>

#include "base/error.h"
#include "base/shallow_json.h"
#include "base/units.h"
#include "base/whole_file.h"
#include "results/anomalies/flags.h"
#include "results/report/report_curves.h"

namespace plumb {
namespace {

constexpr std::size_t kMostSteps = 1000;   // per run, after the warm-up: they take 20 KB of a page
constexpr std::size_t kMostPublished = 3;  // per curve

// The path of a file of the run; empty if it has none.
std::string file_of(const Measurement& run, const char* name) {
  std::error_code ignored;
  const fs::path file = run.run_folder / name;
  return !run.run_folder.empty() && fs::is_regular_file(file, ignored) ? file.string() : "";
}

ReportRun run_of(const Measurement& measurement, const Sample& sample, std::vector<std::string>& left_out) {
  ReportRun run;
  run.origin = measurement.origin;
  run.configuration = sample.configuration;
  run.images_per_second = measurement.images_per_second;
  run.record = measurement.record;
  run.trace = file_of(measurement, "trace.json");
  try {
    if (const std::string file = file_of(measurement, "profile.json"); !file.empty()) {
      RunProfile profile;
      const Json json = parse_shallow_json(read_whole_file(file, {.remedy = "run again or remove the file"}));
      fields::read_all(ops_reader(json, file, kProfileFormat), profile);
      run.kinds = std::move(profile.kinds);
    }
  } catch (const Error& error) {
    left_out.push_back(error.what());
  }
  return run;
}

// The page shows labels instead of the runs' origins.
void add_flags(const Sample& sample, const std::string& subject, const ReportPoint& point, ReportData& data) {
  for (Note& flag : sample_flags(sample)) {
    const auto run = std::ranges::find(sample.runs, flag.subject, &Measurement::origin);
    flag.subject = run == sample.runs.end()
                       ? subject
                       : data.runs[point.runs[static_cast<std::size_t>(run - sample.runs.begin())]].label;
    data.notes.push_back(std::move(flag));
  }
}

void add_runs(const std::vector<CurveSamples>& groups, ReportData& data) {
  for (std::size_t c = 0; c < groups.size(); ++c)
    for (std::size_t p = 0; p < groups[c].size(); ++p) {
      const Sample& sample = *groups[c][p];
      const ReportPoint& point = data.curves[c].points[p];
      for (std::size_t i = 0; i < sample.runs.size(); ++i) {
        data.runs.push_back(run_of(sample.runs[i], sample, data.left_out));
        data.runs.back().label = fmt::format("{}, {}{}", data.curves[c].label, point.case_name,
                                             sample.runs.size() > 1 ? fmt::format(", run {}", i + 1) : "");
      }
      add_flags(sample, data.curves[c].label + ", " + point.case_name, point, data);
    }
}

// What the page shows of it.
RunRecord thinned(RunRecord record) {
  record.step_seconds.clear();
  if (record.loss.size() > 2) record.loss.erase(record.loss.begin() + 1, record.loss.end() - 1);
  record.loss_scale.clear();
  record.collectives.clear();
  for (GpuRecord& gpu : record.gpus) gpu.samples = {};
  return record;
}

// That pictures of one run show: the last one of which most is known, so of the largest case.
std::size_t run_to_show(const std::vector<ReportRun>& runs) {
  const auto known = [](const ReportRun& run) {
    return run.record.has_value() + !run.kinds.empty() + !run.trace.empty();
  };
  std::size_t shown = 0;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (known(runs[i]) >= known(runs[shown])) shown = i;
  return shown;
}

}  // namespace

Json to_json(const ReportRun& run) {
  Json json{{"label", run.label},
            {"origin", run.origin},
            {"configuration_text", configuration_text(run.configuration)},
            {"images_per_second", run.images_per_second}};
  if (run.record) {
    json["record"] = to_json(thinned(*run.record));
    std::vector<double> steps = run.record->step_seconds;
    steps.resize(std::min(steps.size(), static_cast<std::size_t>(run.record->warmup) + kMostSteps));
    json["steps"] = {{"warmup", run.record->warmup}, {"seconds", std::move(steps)}};
  }
  if (!run.kinds.empty()) json["profile"] = {{"kinds", fields::written(run.kinds)}};
  if (!run.trace.empty()) json["trace"] = run.trace;
  return json;
}

ReportData collect_report(const LoadedSamples& samples, const ReportOptions& options) {
  ReportData data;
  data.made_by = options.made_by;
  data.created = options.created;
  data.verdict = options.verdict;
  const std::vector<CurveSamples> groups = group_by_curve(samples.samples);
  data.curves = own_curves(groups);
  data.common = name_curves(data.curves);
  data.published = published_curves(data.curves, published_results(), kMostPublished);
  data.title = data.verdict.is_null() ? "Training throughput of " + subject_of(data.curves)
                                      : "Verdict on " + counted(data.verdict.at("hosts").size(), "host");
  for (const Note& bad : samples.bad) data.left_out.push_back(note_text(bad));
  add_predictions(groups, options, data);
  add_runs(groups, data);
  data.shown_run = run_to_show(data.runs);
  return data;
}

}  // namespace plumb
