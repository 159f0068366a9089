#include <algorithm>

#include "base/text.h"
#include "models/catalogue.h"
#include "results/record/gpu_name.h"
#include "results/report/report_curves.h"

namespace plumb {
namespace {

// The work of a step, whoever did it and how.
Configuration work_of(const Configuration& configuration) {
  Configuration work = configuration;
  work.framework.clear();
  work.settings.clear();
  work.nodes = work.devices_per_node = 1;
  return work;
}

void add_own(const ReportCurve& curve, const ReportPoint& point, std::vector<ReportBars>& groups) {
  const Configuration work = work_of(curve.configuration);
  auto group = std::ranges::find(groups, work, &ReportBars::work);
  if (group == groups.end()) group = groups.insert(group, {.label = "", .work = work, .bars = {}});
  const std::string name = curve.configuration.framework.empty() ? "unknown" : curve.configuration.framework;
  const ReportBar bar{.label = name,
                      .images_per_second = point.median_images_per_second,
                      .runs = point.images_per_second.size()};
  auto same = std::ranges::find(group->bars, name, &ReportBar::label);
  if (same == group->bars.end())
    group->bars.push_back(bar);
  else if (same->images_per_second < bar.images_per_second)
    *same = bar;
}

bool is_comparable(const Configuration& work, const PublishedResult& row) {
  const Configuration& other = row.configuration;
  return row.images_per_second > 0 && other.devices() > 0 &&
         comparable_model(other.model) == comparable_model(work.model) && other.precision == work.precision &&
         !work.device.empty() && is_same_device(work.device, other.device);
}

bool is_same_work(const Configuration& work, const PublishedResult& row) {
  return row.batch_per_device.has_value() && differences(work, row.configuration).empty();
}

double per_device(const PublishedResult& row) {
  return row.images_per_second / row.configuration.devices();
}

// "MLPerf v4.0", "NGC PyTorch 2.3.0a0"
std::string publisher(const PublishedResult& row) {
  const std::string family = framework_family(row.framework);
  const std::string version = row.framework_version.substr(0, row.framework_version.find_first_of("(+"));
  const std::string name = version.starts_with("MLPerf") ? version : family + " " + version;
  return name.substr(0, name.find_last_not_of(' ') + 1);
}

// "on 8 devices", "on 2 x 8 devices"
std::string devices_text(const Configuration& c) {
  if (c.devices() == 1) return "on 1 device";
  return c.nodes == 1 ? fmt::format("on {} devices", c.devices_per_node)
                      : fmt::format("on {} x {} devices", c.nodes, c.devices_per_node);
}

ReportBar published_bar(const Configuration& work, const PublishedResult& row) {
  ReportBar bar{.kind = ReportBar::Kind::published,
                .label = publisher(row),
                .images_per_second = per_device(row),
                .source = row.source};
  if (is_same_work(work, row)) return bar;
  bar.kind = ReportBar::Kind::best;
  bar.differences = other_sides_text(differences(work, row.configuration, false));
  append_part(bar.differences, devices_text(row.configuration));
  return bar;
}

void add_published(std::span<const PublishedResult> published, ReportBars& group) {
  const PublishedResult* best = nullptr;
  for (const PublishedResult& row : published) {
    if (!is_comparable(group.work, row)) continue;
    if (!best || per_device(row) > per_device(*best)) best = &row;
    if (is_same_work(group.work, row)) group.bars.push_back(published_bar(group.work, row));
  }
  if (best && !is_same_work(group.work, *best)) group.bars.push_back(published_bar(group.work, *best));
}

}  // namespace

void add_bars(std::span<const PublishedResult> published, ReportData& data) {
  for (const ReportCurve& curve : data.curves)
    for (const ReportPoint& point : curve.points)
      if (point.devices == 1) add_own(curve, point, data.bars);
  const Labels labels = labels_of(mapped(data.bars, &ReportBars::work));
  data.bars_common = labels.common;
  for (std::size_t i = 0; i < data.bars.size(); ++i) {
    data.bars[i].label = labels.each[i];
    add_published(published, data.bars[i]);
  }
}

}  // namespace plumb
