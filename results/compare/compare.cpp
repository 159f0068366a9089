#include "results/compare/compare.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "base/text_table.h"
#include "results/compare/curve_samples.h"
#include "results/published/published.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// The sample that differs least from `own`, the first of several.
const Sample* nearest_sample(const Sample& own, std::span<const Sample> others) {
  const auto nearest = std::ranges::min_element(others, {}, [&](const Sample& other) {
    return distance(differences(own.configuration, other.configuration));
  });
  return nearest == others.end() ? nullptr : &*nearest;
}

std::vector<Difference> least_differences(const Sample& own, const SampleSet& others) {
  return differences(own.configuration, nearest_sample(own, others.loaded.samples)->configuration);
}

bool is_twin(const Sample& own, const Sample& other) {
  return differences(own.configuration, other.configuration).empty() &&
         setting_differences(own.configuration, other.configuration).empty();
}

bool has_twin(const Sample& own, std::span<const Sample> others) {
  return std::ranges::any_of(others, [&](const Sample& other) { return is_twin(own, other); });
}

// By first, then second.
std::vector<SamplePair> pair_samples(std::span<const Sample> first, std::span<const Sample> second,
                                     bool force) {
  std::vector<SamplePair> pairs;
  for (const Sample& own : first) {
    const std::size_t before = pairs.size();
    for (const Sample& other : second) {
      if (!differences(own.configuration, other.configuration).empty()) continue;
      const bool both_have_better = !is_twin(own, other) && has_twin(own, second) && has_twin(other, first);
      if (!both_have_better) pairs.push_back({&own, &other, {}});
    }
    if (pairs.size() > before || !force) continue;
    if (const Sample* nearest = nearest_sample(own, second))
      pairs.push_back({&own, nearest, differences(own.configuration, nearest->configuration)});
  }
  return pairs;
}

[[noreturn]] void refuse(const SampleSet& first, const SampleSet& second) {
  std::vector<std::vector<Difference>> least;
  for (const Sample& sample : first.loaded.samples) least.push_back(least_differences(sample, second));
  throw Error(ExitCode::bad_data,
              "'{}' and '{}' were measured with different configurations: {}; name runs of one "
              "configuration, or give --force to set them side by side all the same",
              first.name, second.name, differences_text(*std::ranges::min_element(least, {}, distance)));
}

// Notes every sample without a pair.
void add_notes(const SampleSet& of, const SampleSet& other, const std::vector<SamplePair>& pairs,
               std::vector<std::string>& notes) {
  for (const Sample& sample : of.loaded.samples) {
    const auto has_it = [&](const SamplePair& pair) {
      return pair.first == &sample || pair.second == &sample;
    };
    if (std::ranges::any_of(pairs, has_it)) continue;
    notes.push_back(fmt::format("{} has {}, which has no counterpart in {} (nearest: {})", of.name,
                                configuration_text(sample.configuration), other.name,
                                differences_text(least_differences(sample, other))));
  }
}

// What the runs of two sets were made with and on, where all pairs agree in it.
void add_surroundings(const SampleSet& first, const SampleSet& second, const std::vector<SamplePair>& pairs,
                      std::vector<std::string>& notes) {
  const auto of_first_pair = surrounding_differences(*pairs.front().first, *pairs.front().second);
  std::vector<Difference> common;
  std::ranges::copy_if(of_first_pair, std::back_inserter(common), [&](const Difference& difference) {
    return std::ranges::all_of(pairs, [&](const SamplePair& pair) {
      const auto others = surrounding_differences(*pair.first, *pair.second);
      return std::ranges::find(others, difference) != others.end();
    });
  });
  if (!common.empty())
    notes.push_back(fmt::format("{} and {} were not measured alike: {}", first.name, second.name,
                                differences_text(common)));
}

// "A", "B", …; behind "Z" "27", "28", …
std::string label_of(std::size_t set) {
  return set < 26 ? std::string(1, static_cast<char>('A' + set)) : std::to_string(set + 1);
}

std::string interval_text(const std::vector<double>& figures) {
  const std::optional<Interval> interval = median_interval(figures);
  if (!interval) return "-";
  return fmt::format("{:.2f} to {:.2f} ({})", interval->low, interval->high, confidence_text(*interval));
}

TextRow sample_row(const std::string& label, const Sample& sample, const std::string& ratio) {
  const std::vector<double> figures = sample.figures();
  return {label,
          sample.configuration.framework.empty() ? "?" : sample.configuration.framework,
          std::to_string(figures.size()),
          fmt::format("{:.2f}", median(figures)),
          interval_text(figures),
          ratio};
}

// The first set's samples that have something beside them.
std::vector<const Sample*> shown_samples(const CompareReport& report) {
  std::vector<const Sample*> shown;
  for (const Sample& sample : report.sets.front().loaded.samples) {
    const bool is_paired = std::ranges::any_of(
        report.comparison.pairs, [&](const ComparedPair& pair) { return pair.samples.first == &sample; });
    if (is_paired || report.sets.size() == 1) shown.push_back(&sample);
  }
  return shown;
}

std::string verdict_lines(const ComparedPair& pair, const Criteria& criteria) {
  const std::string label = label_of(pair.second_set);
  std::string text =
      hanging_lines(label + " against A: " + verdict_text(pair.comparison, criteria), "    ", "");
  if (!pair.samples.differences.empty())
    text += hanging_lines("FORCED, the configurations differ: " + differences_text(pair.samples.differences),
                          "    ", "  ");
  if (!pair.settings.empty())
    text += hanging_lines("run with " + differences_text(pair.settings), "    ", "  ");
  return text;
}

std::string sample_text(const Sample& sample, const CompareReport& report) {
  std::vector<TextRow> rows{{"", "framework", "runs", "images/s", "interval of the median", "ratio"},
                            sample_row("A", sample, "1")};
  std::string verdicts;
  for (const ComparedPair& pair : report.comparison.pairs) {
    if (pair.samples.first != &sample) continue;
    rows.push_back(sample_row(label_of(pair.second_set), *pair.samples.second,
                              fmt::format("{:.4f}", pair.comparison.ratio)));
    verdicts += verdict_lines(pair, report.criteria);
  }
  return hanging_lines(configuration_text(sample.configuration), "  ", "") + padded_table(rows, "llrrlr") +
         verdicts;
}

// Throughput of one device beside one, where the numbers of devices differ.
std::string per_device_text(double ratio, const Sample& own, const PublishedResult& row) {
  const int devices = own.configuration.devices(), others = row.configuration.devices();
  if (devices < 1 || others < 1 || devices == others) return "";
  return fmt::format(", {:.3g} times per device", ratio * others / devices);
}

std::string published_text(const PublishedBeside& beside) {
  if (beside.nearest.empty())
    return fmt::format("No result of {} is published for this kind of device.\n",
                       beside.sample->configuration.model);
  const double own = median(beside.sample->figures());
  std::string text =
      "Published for the nearest configurations (one figure each, so nothing is significant):\n";
  for (const NearestPublished& near : beside.nearest) {
    const PublishedResult& row = near.result;
    const double ratio = own / row.images_per_second;
    text += hanging_lines(
        fmt::format("{} {}: {:.2f} images/s; A has {:.3g} times that{}", row.framework, row.framework_version,
                    row.images_per_second, ratio, per_device_text(ratio, *beside.sample, row)),
        "    ", "  ");
    text += hanging_lines(
        near.differences.empty() ? "no difference is known" : differences_text(near.differences), "      ",
        "    ");
    text += hanging_lines(row.source + (row.notes.empty() ? "" : ": " + row.notes), "      ", "    ");
    if (!row.inconsistency.empty()) text += hanging_lines("note: " + row.inconsistency, "      ", "    ");
  }
  return text;
}

// The verdict on a set's scaling; configurations are named where there are several.
std::string scaling_lines(const std::string& label, const SampleSet& set) {
  const std::vector<CurveScaling> curves = scaling_of(set.loaded.samples);
  std::string text;
  for (const CurveScaling& curve : curves) {
    const std::string of = curves.size() > 1 ? ", " + configuration_text(curve.configuration) : "";
    for (const std::string& sentence : scaling_verdict(curve.losses))
      text += hanging_lines(fmt::format("{}{}: {}", label, of, sentence), "    ", "  ");
  }
  return text;
}

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

SetComparison compare_sets(std::span<const SampleSet> sets, const CompareOptions& options) {
  SetComparison result;
  for (const SampleSet& set : sets)
    for (const Sample& sample : set.loaded.samples)
      if (const std::string mixture = mixture_text(sample); !mixture.empty())
        result.notes.push_back(fmt::format("in {}, {}", set.name, mixture));
  for (std::size_t i = 1; i < sets.size(); ++i) {
    const auto pairs = pair_samples(sets[0].loaded.samples, sets[i].loaded.samples, options.force);
    if (pairs.empty()) refuse(sets[0], sets[i]);
    for (const SamplePair& pair : pairs)
      result.pairs.push_back({pair, i,
                              setting_differences(pair.first->configuration, pair.second->configuration),
                              compare(pair.first->figures(), pair.second->figures(), options.criteria)});
    add_surroundings(sets[0], sets[i], pairs, result.notes);
    add_notes(sets[0], sets[i], pairs, result.notes);
    add_notes(sets[i], sets[0], pairs, result.notes);
  }
  std::ranges::stable_sort(result.pairs, {}, [](const ComparedPair& pair) { return pair.samples.first; });
  return result;
}

std::string compare_text(const CompareReport& report) {
  std::string text;
  for (std::size_t i = 0; i < report.sets.size(); ++i)
    text += fmt::format("{}: {}\n", label_of(i), report.sets[i].name);
  std::string scaling;
  for (std::size_t i = 0; i < report.sets.size(); ++i) scaling += scaling_lines(label_of(i), report.sets[i]);
  if (!scaling.empty()) text += "\nscaling\n" + scaling;
  for (const Sample* sample : shown_samples(report)) {
    text += "\n" + sample_text(*sample, report);
    for (const PublishedBeside& beside : report.published)
      if (beside.sample == sample) text += published_text(beside);
  }
  return text;
}

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
