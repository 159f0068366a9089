#include <array>

#include "results/compare/compare.h"
#include "results/compare/curve_samples.h"
#include "results/published/published.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

// Unknown values are null.
Json configuration_json(const Configuration& c) {
  const auto text = [](const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); };
  const auto number = [](std::int64_t value) { return value == 0 ? Json(nullptr) : Json(value); };
  return {{"model", text(c.model)},
          {"precision", text(c.precision)},
          {"device", text(c.device)},
          {"data", text(c.data)},
          {"batch_per_device", number(c.batch_per_device)},
          {"nodes", number(c.nodes)},
          {"devices_per_node", number(c.devices_per_node)},
          {"image_size", number(c.image_size)},
          {"head", text(c.head)},
          {"classes", number(c.classes)},
          {"options", c.options},
          {"settings", c.settings}};
}

Json interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return {{"low", interval->low}, {"high", interval->high}, {"confidence", interval->confidence}};
}

Json differences_json(const std::vector<Difference>& differences) {
  Json json = Json::array();
  for (const Difference& difference : differences)
    json.push_back({{"what", difference.what}, {"first", difference.first}, {"second", difference.second}});
  return json;
}

Json sample_json(const std::string& path, const Sample& sample) {
  const std::vector<double> figures = sample.figures();
  return {{"path", path},
          {"framework", sample.configuration.framework},
          {"configuration", configuration_json(sample.configuration)},
          {"runs", sample.origins()},
          {"images_per_second", figures},
          {"median", median(figures)},
          {"median_interval", interval_json(median_interval(figures))}};
}

const char* verdict_name(SpeedVerdict verdict) {
  static constexpr std::array kNames{"faster", "slower", "none_shown", "too_few"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Json pair_json(const ComparedPair& pair, const CompareReport& report) {
  const Comparison& comparison = pair.comparison;
  return {{"first", sample_json(report.sets.front().name, *pair.samples.first)},
          {"second", sample_json(report.sets[pair.second_set].name, *pair.samples.second)},
          {"ratio", comparison.ratio},
          {"ratio_interval", interval_json(comparison.ratio_range)},
          {"p_two_sided", comparison.test.p_two_sided},
          {"verdict", verdict_name(comparison.verdict)},
          {"smallest_shown", comparison.smallest_shown},
          {"text", verdict_text(comparison, report.criteria)},
          {"forced", !pair.samples.differences.empty()},
          {"differences", differences_json(pair.samples.differences)},
          {"settings", differences_json(pair.settings)}};
}

Json published_beside_json(const PublishedBeside& beside, const CompareReport& report) {
  Json nearest = Json::array();
  for (const NearestPublished& near : beside.nearest)
    nearest.push_back({{"result", published_result_json(near.result)},
                       {"differences", differences_json(near.differences)}});
  return {{"sample", sample_json(report.sets.front().name, *beside.sample)}, {"nearest", nearest}};
}

Json scaling_of_set(const SampleSet& set) {
  Json json = Json::array();
  for (const CurveScaling& curve : scaling_of(set.loaded.samples)) {
    Json losses = Json::array();
    for (const ScalingLoss& loss : curve.losses) losses.push_back(to_json(loss));
    json.push_back({{"path", set.name},
                    {"configuration", configuration_json(curve.configuration)},
                    {"losses", std::move(losses)}});
  }
  return json;
}

}  // namespace

Json compare_json(const CompareReport& report) {
  Json json{{"schema", "plumbline.compare/1"},
            {"min_effect", report.criteria.min_effect},
            {"significance", report.criteria.significance},
            {"scaling", Json::array()},
            {"comparisons", Json::array()},
            {"published", Json::array()},
            {"notes", report.comparison.notes},
            {"left_out", Json::array()}};
  for (const SampleSet& set : report.sets)
    for (const Json& curve : scaling_of_set(set)) json["scaling"].push_back(curve);
  for (const ComparedPair& pair : report.comparison.pairs)
    json["comparisons"].push_back(pair_json(pair, report));
  for (const PublishedBeside& beside : report.published)
    json["published"].push_back(published_beside_json(beside, report));
  for (const SampleSet& set : report.sets)
    for (const BadFile& bad : set.loaded.bad)
      json["left_out"].push_back({{"path", bad.path}, {"reason", bad.defect.reason}});
  return json;
}

}  // namespace plumb
