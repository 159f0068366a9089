#include "results/report/report_curves.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "models/catalogue.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// Over the runs that have the figure: a member of RunRecord, or a function of one.
template <typename Figure>
std::optional<double> median_of_runs(const Sample& sample, Figure figure) {
  std::vector<double> figures;
  for (const Measurement& run : sample.runs)
    if (run.record)
      if (const std::optional<double> value = std::invoke(figure, *run.record)) figures.push_back(*value);
  return figures.empty() ? std::nullopt : std::optional(median(figures));
}

std::optional<std::int64_t> peak_memory_bytes(const Sample& sample) {
  std::optional<std::int64_t> peak;
  for (const Measurement& run : sample.runs)
    if (run.record && run.record->memory_bytes.contains("peak"))
      peak = std::max(peak.value_or(0), run.record->memory_bytes.at("peak"));
  return peak;
}

ReportPoint point_of(const Sample& sample) {
  ReportPoint point;
  point.case_name = sample.configuration.case_name();
  point.devices = sample.configuration.devices();
  point.images_per_second = sample.figures();
  point.median_images_per_second = median(point.images_per_second);
  point.interval = median_interval(point.images_per_second);
  point.step_seconds = median_of_runs(sample, [](const RunRecord& record) { return mean(record.window()); });
  point.exposed_communication_seconds = median_of_runs(sample, &RunRecord::exposed_communication_seconds);
  point.data_wait_seconds = median_of_runs(sample, &RunRecord::data_wait_seconds);
  point.joules_per_image = median_of_runs(sample, &RunRecord::energy_joules_per_image);
  point.peak_memory_bytes = peak_memory_bytes(sample);
  return point;
}

struct Property {
  std::string what, text;
  auto operator<=>(const Property&) const = default;
};

std::string image_size_text(const Configuration& c) {
  const Model* model = find_model(c.model);
  const bool is_usual_size = model != nullptr && model->image_size == c.image_size;
  return c.image_size > 0 && !is_usual_size ? fmt::format("{} pixels", c.image_size) : "";
}

// In the order in which labels name them.
std::vector<Property> properties_of(const Configuration& c) {
  std::vector<Property> properties;
  const auto add = [&](const std::string& what, const std::string& text) {
    if (!text.empty()) properties.push_back({what, text});
  };
  const auto words = [](const std::string& name, const std::string& value) {
    return replaced(name, '_', " ") + " " + value;
  };
  add("framework", c.framework);
  add("model", c.model);
  add("precision", c.precision);
  add("batch", c.batch_per_device > 0 ? fmt::format("batch {}", c.batch_per_device) : "");
  add("device", c.device);
  add("data", c.data);
  add("image size", image_size_text(c));
  add("head", c.head == "none" || c.head.empty() ? "" : "head " + c.head);
  add("classes", c.classes > 0 ? fmt::format("{} classes", c.classes) : "");
  for (const auto& [name, value] : c.options)
    if (!is_usual(name, value)) add("option " + name, words(name, value));
  for (const auto& [name, value] : c.settings) add("setting " + name, words(name, value));
  return properties;
}

// "Plumbline fp16, batch 128"
template <typename Wanted>
std::string joined_properties(const Configuration& c, const Wanted& wanted) {
  std::string text;
  bool after_words = false;
  for (const Property& property : properties_of(c)) {
    if (!wanted(property)) continue;
    const std::string& what = property.what;
    const bool together = what == "framework" || what == "model" || what == "precision";
    append_part(text, property.text, together && after_words ? " " : ", ");
    after_words = together;
  }
  return text;
}

}  // namespace

void add_speedups(ReportCurve& curve, std::optional<double> one_device) {
  for (ReportPoint& point : curve.points) {
    if (!point.speedup && one_device.value_or(0) > 0)
      point.speedup = point.median_images_per_second / *one_device;
    if (point.speedup && point.devices > 0) point.efficiency = *point.speedup / point.devices;
  }
}

std::string subject_of(const std::vector<ReportCurve>& curves) {
  std::set<std::string> models, devices;
  for (const ReportCurve& curve : curves) {
    models.insert(curve.configuration.model);
    if (!curve.configuration.device.empty()) devices.insert(curve.configuration.device);
  }
  return fmt::format("{}{}", fmt::join(models, ", "), devices.size() == 1 ? " on " + *devices.begin() : "");
}

void make_unique(std::vector<ReportCurve>& curves) {
  std::map<std::string, int> seen;
  for (ReportCurve& curve : curves)
    if (const int count = ++seen[curve.label]; count > 1) curve.label += fmt::format(" ({})", count);
}

std::string name_curves(std::vector<ReportCurve>& curves) {
  if (curves.empty()) return "";
  std::map<Property, std::size_t> counts;
  for (const ReportCurve& curve : curves)
    for (const Property& property : properties_of(curve.configuration)) ++counts[property];
  const auto is_shared = [&](const Property& property) { return counts.at(property) == curves.size(); };
  for (ReportCurve& curve : curves) {
    curve.label = joined_properties(curve.configuration, std::not_fn(is_shared));
    if (curve.label.empty())
      curve.label = joined_properties(curve.configuration, [](const Property& property) {
        return property.what == "framework" || property.what == "precision" || property.what == "batch";
      });
  }
  make_unique(curves);
  return joined_properties(curves.front().configuration, is_shared);
}

std::vector<ReportCurve> own_curves(const std::vector<CurveSamples>& groups) {
  std::vector<ReportCurve> curves;
  std::size_t runs = 0;
  for (const CurveSamples& group : groups) {
    ReportCurve curve;
    curve.configuration = group.back()->configuration;
    curve.configuration.nodes = curve.configuration.devices_per_node = 0;
    for (const Sample* sample : group) {
      curve.points.push_back(point_of(*sample));
      for (std::size_t run = 0; run < sample->runs.size(); ++run) curve.points.back().runs.push_back(runs++);
    }
    const Sample* alone = one_device_sample(group, groups);
    add_speedups(curve, alone ? std::optional(median(alone->figures())) : std::nullopt);
    curve.scaling = scaling_losses(behind_base(group, groups));
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace plumb
