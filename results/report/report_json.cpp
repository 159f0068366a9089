// The report's data as the page's scripts read it.
#include "results/report/report_data.h"
#include "results/report/run_json.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const ReportPoint& point, bool published) {
  Json json{{"case", point.case_name},
            {"devices", point.devices},
            {"median", point.median_images_per_second},
            {"speedup", or_null(point.speedup)},
            {"efficiency", or_null(point.efficiency)}};
  if (published) return json;
  json["images_per_second"] = point.images_per_second;
  if (point.interval)
    json["interval"] = {{"low", point.interval->low},
                        {"high", point.interval->high},
                        {"confidence", point.interval->confidence}};
  json["step_seconds"] = or_null(point.step_seconds);
  json["exposed_communication_seconds"] = or_null(point.exposed_communication_seconds);
  json["data_wait_seconds"] = or_null(point.data_wait_seconds);
  json["joules_per_image"] = or_null(point.joules_per_image);
  json["peak_memory_bytes"] = or_null(point.peak_memory_bytes);
  json["runs"] = point.runs;
  return json;
}

Json to_json(const ReportCurve& curve) {
  Json json{{"label", curve.label}, {"configuration", to_json(curve.configuration)}};
  if (curve.published)
    json.update({{"selected", curve.selected},
                 {"source", curve.source},
                 {"differences", curve.differences},
                 {"notes", curve.notes}});
  json["points"] = column(curve.points, [&](const ReportPoint& p) { return to_json(p, curve.published); });
  return json;
}

}  // namespace

Json to_json(const ReportData& data) {
  Names names;
  Json runs = column(data.runs, [&](const ReportRun& run) { return to_json(run, names); });
  const auto curves = [](const std::vector<ReportCurve>& list) {
    return column(list, [](const ReportCurve& curve) { return to_json(curve); });
  };
  return {{"title", data.title},
          {"made_by", data.made_by},
          {"created", data.created},
          {"flags",
           column(data.flags,
                  [](const ReportFlag& flag) {
                    return Json{{"subject", flag.subject}, {"kind", flag.kind}, {"sentence", flag.sentence}};
                  })},
          {"curves", curves(data.curves)},
          {"published", curves(data.published)},
          {"runs", std::move(runs)},
          {"left_out", data.left_out},
          {"names", names.list()}};
}

}  // namespace plumb
