#include <array>

#include "results/compare/compare.h"
#include "results/compare/curve_samples.h"
#include "results/published/published.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

Json sample_json(const std::string& path, const Sample& sample) {
  const std::vector<double> figures = sample.figures();
  return {{"path", path},
          {"framework", sample.configuration.framework},
          {"configuration", fields::written(sample.configuration)},
          {"runs", sample.origins()},
          {"images_per_second", figures},
          {"median", median(figures)},
          {"median_interval", fields::written(median_interval(figures))}};
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
          {"ratio_interval", fields::written(comparison.ratio_range)},
          {"p_two_sided", comparison.test.p_two_sided},
          {"verdict", verdict_name(comparison.verdict)},
          {"smallest_shown", comparison.smallest_shown},
          {"text", verdict_text(comparison, report.criteria)},
          {"forced", !pair.samples.differences.empty()},
          {"differences", fields::written(pair.samples.differences)},
          {"settings", fields::written(pair.settings)}};
}

Json published_beside_json(const PublishedBeside& beside, const CompareReport& report) {
  Json nearest = Json::array();
  for (const NearestPublished& near : beside.nearest)
    nearest.push_back(
        {{"result", published_result_json(near.result)}, {"differences", fields::written(near.differences)}});
  return {{"sample", sample_json(report.sets.front().name, *beside.sample)}, {"nearest", nearest}};
}

Json scaling_of_set(const SampleSet& set) {
  Json json = Json::array();
  for (const CurveScaling& curve : scaling_of(set.loaded.samples)) {
    Json losses = Json::array();
    for (const ScalingLoss& loss : curve.losses) losses.push_back(to_json(loss));
    json.push_back({{"path", set.name},
                    {"configuration", fields::written(curve.configuration)},
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
    for (const Note& bad : set.loaded.bad)
      json["left_out"].push_back({{"path", bad.subject}, {"reason", bad.text}});
  return json;
}

}  // namespace plumb
