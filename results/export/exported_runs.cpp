#include "results/export/exported_runs.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "results/anomalies/flags.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

struct Gauge {
  const char *name, *help;
  std::optional<double> (*value)(const RunRecord& record);
};

std::optional<double> peak_bytes(const RunRecord& record) {
  const auto peak = record.memory_bytes.find("peak");
  return peak == record.memory_bytes.end() ? std::nullopt : std::optional(static_cast<double>(peak->second));
}

std::optional<double> median_step_seconds(const RunRecord& record) {
  const std::span<const double> steps = record.window();
  return median({steps.begin(), steps.end()});
}

const Gauge kGauges[]{
    {"images_per_second",
     "Images of all ranks in the iterations after warm-up, divided by the longest time of a rank.",
     [](const RunRecord& r) { return std::optional(r.images_per_second.mean); }},
    {"step_seconds", "Median time of a step after warm-up on rank 0.", median_step_seconds},
    {"exposed_communication_seconds", "Mean time of a step in which rank 0 waited for a collective.",
     [](const RunRecord& r) { return std::optional(r.exposed_communication_seconds); }},
    {"data_wait_seconds", "Mean time of a step in which rank 0 waited for a batch.",
     [](const RunRecord& r) { return std::optional(r.data_wait_seconds); }},
    {"peak_memory_bytes", "Largest memory in use on rank 0's device.", peak_bytes},
    {"energy_joules_per_image", "Energy of all GPUs per image.",
     [](const RunRecord& r) { return r.energy_joules_per_image; }}};

std::string label_text(const std::string& name, const std::string& value) {
  const std::string escaped = replaced(replaced(value, '\\', "\\\\"), '"', "\\\"");
  return name + "=\"" + replaced(escaped, '\n', "\\n") + "\"";
}

// Different configurations have different labels. A label without a value is none to Prometheus.
std::string labels_of(const Configuration& configuration) {
  std::string labels;
  const auto add = [&](const std::string& name, const Json& value) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (!value.is_null() && text != "none") append_part(labels, label_text(name, text), ",");
  };
  const Json members = fields::written(configuration);
  for (const auto& [name, value] : members.items())
    if (!value.is_object()) add(name, value);
  for (const char* options : {"options", "settings"})
    for (const auto& [name, value] : members[options].items()) add(name, value);
  return labels;
}

std::optional<double> median_of(const Sample& sample, const Gauge& gauge) {
  std::vector<double> values;
  for (const Measurement& run : sample.runs)
    if (const auto value = gauge.value(*run.record); value && std::isfinite(*value)) values.push_back(*value);
  return values.empty() ? std::nullopt : std::optional(median(values));
}

// `value`: of a sample, or nothing.
template <typename Value>
std::string family_text(const std::string& name, const std::string& help, const std::vector<Sample>& samples,
                        const Value& value) {
  std::string lines;
  for (const Sample& sample : samples)
    if (const std::optional<double> number = value(sample))
      lines += fmt::format("plumbline_{}{{{}}} {}\n", name, labels_of(sample.configuration), *number);
  if (lines.empty()) return "";
  return fmt::format("# HELP plumbline_{0} {1}\n# TYPE plumbline_{0} gauge\n{2}", name, help, lines);
}

// Why a run is not exported, with the remedy; empty if it is.
std::string why_not_exported(const Measurement& run) {
  if (!run.record) return "a log says too little; pass the run's folder with result.json";
  const RunRecord& record = *run.record;
  if (record.status != "ok") return failure_text(record);
  if (record.ranks_per_gpu > 1) return shared_gpu_text(record.ranks_per_gpu);
  for (const auto& [check, passed] : record.checks.items())
    if (passed != true) return fmt::format("its check {} did not pass; run the bench again", check);
  return record.checks.empty() ? "it has no checks; run the bench again" : "";
}

std::optional<double> latest_start(const Sample& sample) {
  const std::int64_t latest = std::ranges::max_element(sample.runs, {}, &Measurement::started)->started;
  return latest > 0 ? std::optional(static_cast<double>(latest)) : std::nullopt;
}

}  // namespace

std::string prometheus_text(const std::vector<Sample>& samples) {
  std::string text;
  for (const Gauge& gauge : kGauges)
    text += family_text(gauge.name, std::string(gauge.help) + " Median of the runs.", samples,
                        [&](const Sample& sample) { return median_of(sample, gauge); });
  text += family_text("runs", "Runs that the medians are taken over.", samples, [](const Sample& sample) {
    return std::optional(static_cast<double>(sample.runs.size()));
  });
  return text + family_text("last_run_timestamp_seconds", "When the latest run began, since 1970.", samples,
                            latest_start);
}

LoadedSamples exported_runs(LoadedSamples loaded) {
  for (Sample& sample : loaded.samples)
    std::erase_if(sample.runs, [&](const Measurement& run) {
      const std::string why = why_not_exported(run);
      if (!why.empty()) loaded.bad.push_back({"unfinished", why, run.origin});
      return !why.empty();
    });
  std::erase_if(loaded.samples, [](const Sample& sample) { return sample.runs.empty(); });
  if (loaded.samples.empty() && !loaded.bad.empty())
    throw Error(ExitCode::bad_data, "no run can be exported; '{}' cannot: {}", loaded.bad.front().subject,
                loaded.bad.front().text);
  return loaded;
}

}  // namespace plumb
