#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "results/record/gpu_name.h"
#include "results/report/report_curves.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

using TableKey = std::vector<std::string>;

// Without the parts that say how one figure of a table was computed.
std::string table_notes(const std::string& notes) {
  std::string kept;
  for (std::size_t begin = 0; begin < notes.size();) {
    const std::size_t end = std::min(notes.find("; ", begin), notes.size());
    const std::string part = notes.substr(begin, end - begin);
    if (!part.starts_with("computed:") && !part.starts_with("median_speed=")) kept += part + "; ";
    begin = end + 2;
  }
  return kept;
}

// Rows of one table, or of one folder of logs, differ in nothing here. Sources are "file:line".
TableKey table_of(const PublishedResult& row) {
  return {row.source.substr(0, row.source.find(':')),
          row.framework,
          row.framework_version,
          row.model,
          row.dataset_or_mode,
          row.precision,
          std::to_string(row.batch_per_device.value_or(0)),
          row.configuration.device,
          table_notes(row.notes)};
}

// Single runs of one case are one point.
void add_point(const PublishedResult& row, ReportCurve& curve) {
  const std::string case_name = row.configuration.case_name();
  auto point = std::ranges::find(curve.points, case_name, &ReportPoint::case_name);
  if (point == curve.points.end()) {
    point = curve.points.emplace(point);
    point->case_name = case_name;
    point->devices = row.configuration.devices();
    point->speedup = row.speedup;
    point->source = row.source;
  }
  point->images_per_second.push_back(row.images_per_second);
  point->median_images_per_second = median(point->images_per_second);
}

ReportCurve published_curve(const PublishedResult& row) {
  ReportCurve curve;
  curve.configuration = row.configuration;
  curve.configuration.nodes = curve.configuration.devices_per_node = 0;
  curve.label = fmt::format("{} {} {}", row.framework, row.configuration.model, row.configuration.precision);
  if (row.batch_per_device) curve.label += fmt::format(", batch {}", *row.batch_per_device);
  if (!row.configuration.device.empty()) curve.label += ", " + row.configuration.device;
  return curve;
}

ReportCurve curve_of_table(const TableKey& table, std::span<const PublishedResult> published) {
  ReportCurve curve;
  for (const PublishedResult& row : published) {
    if (row.configuration.devices() < 1 || row.images_per_second <= 0 || table_of(row) != table) continue;
    if (curve.points.empty()) curve = published_curve(row);
    add_point(row, curve);
  }
  std::ranges::stable_sort(curve.points, {}, &ReportPoint::devices);
  const ReportPoint* alone = find_in(curve.points, 1, &ReportPoint::devices);
  add_speedups(curve, alone ? std::optional(alone->median_images_per_second) : std::nullopt);
  return curve;
}

}  // namespace

std::vector<ReportCurve> published_curves(std::span<const ReportCurve> own,
                                          std::span<const PublishedResult> published, std::size_t most) {
  std::vector<ReportCurve> curves;
  std::set<TableKey> tables;
  for (const ReportCurve& curve : own) {
    Configuration configuration = curve.configuration;
    configuration.nodes = 1;
    configuration.devices_per_node = curve.points.back().devices;
    for (const NearestPublished& near : nearest_among(published, configuration, most)) {
      if (!tables.insert(table_of(near.result)).second) continue;
      ReportCurve found = curve_of_table(table_of(near.result), published);
      if (found.points.empty()) continue;
      found.differences = differences_text(differences(curve.configuration, found.configuration, false));
      found.same_device = is_same_device(curve.configuration.device, found.configuration.device);
      curves.push_back(std::move(found));
    }
  }
  make_unique(curves);
  return curves;
}

}  // namespace plumb
