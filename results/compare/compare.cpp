#include "results/compare/compare.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "base/text_table.h"
#include "results/compare/scaling_loss.h"
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

struct SamplePair {
  const Sample* first = nullptr;
  const Sample* second = nullptr;
  std::vector<Difference> differences;  // empty unless forced
};

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
  const auto least =
      mapped(first.loaded.samples, [&](const Sample& sample) { return least_differences(sample, second); });
  throw Error(ExitCode::bad_data,
              "'{}' and '{}' have different configurations: {}; pass runs of one configuration, or --force "
              "to compare them anyway",
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

std::string interval_text(const std::vector<double>& figures) {
  const std::optional<Interval> interval = median_interval(figures);
  if (!interval) return "-";
  return fmt::format("{:.2f} to {:.2f} ({})", interval->low, interval->high, confidence_text(*interval));
}

// What a table calls a set: "A", "B", …; after "Z" "27", "28", …
std::string label_of(std::size_t set) {
  return set < 26 ? std::string(1, static_cast<char>('A' + set)) : std::to_string(set + 1);
}

TextRow sample_row(const std::string& label, const ComparedSample& sample, const std::string& ratio) {
  return {label,
          sample.configuration.framework.empty() ? "?" : sample.configuration.framework,
          std::to_string(sample.figures.size()),
          fmt::format("{:.2f}", median(sample.figures)),
          interval_text(sample.figures),
          ratio};
}

std::string verdict_lines(const ComparedPair& pair) {
  std::string text = hanging_lines(label_of(pair.second_set) + " against A: " + pair.verdict, "    ", "");
  if (!pair.differences.empty())
    text += hanging_lines("FORCED, the configurations differ: " + differences_text(pair.differences), "    ",
                          "  ");
  if (!pair.settings.empty())
    text += hanging_lines("run with " + differences_text(pair.settings), "    ", "  ");
  return text;
}

// Throughput of one device beside one, where the numbers of devices differ.
std::string per_device_text(double ratio, const ComparedSample& own, const PublishedResult& row) {
  const int devices = own.configuration.devices(), others = row.configuration.devices();
  if (devices < 1 || others < 1 || devices == others) return "";
  return fmt::format(", {:.3g} times per device", ratio * others / devices);
}

std::string published_text(const PublishedBeside& beside) {
  if (beside.nearest.empty())
    return fmt::format("No result of {} is published for this kind of device.\n",
                       beside.sample.configuration.model);
  const double own = median(beside.sample.figures);
  std::string text =
      "Published for the nearest configurations (one figure each, so nothing is significant):\n";
  for (const NearestPublished& near : beside.nearest) {
    const PublishedResult& row = near.result;
    const double ratio = own / row.images_per_second;
    text += hanging_lines(
        fmt::format("{} {}: {:.2f} images/s; A has {:.3g} times that{}", row.framework, row.framework_version,
                    row.images_per_second, ratio, per_device_text(ratio, beside.sample, row)),
        "    ", "  ");
    text += hanging_lines(
        near.differences.empty() ? "no difference is known" : differences_text(near.differences), "      ",
        "    ");
    text += hanging_lines(row.source + (row.notes.empty() ? "" : ": " + row.notes), "      ", "    ");
    if (!row.inconsistency.empty()) text += hanging_lines("note: " + row.inconsistency, "      ", "    ");
  }
  return text;
}

// A sample of the first set with all that stands beside it; empty if nothing does.
std::string sample_text(std::size_t place, const CompareReport& report) {
  const SampleSet& set = report.sets.front();
  const ComparedSample own = compared_sample(set, set.loaded.samples[place]);
  std::vector<TextRow> rows{{"", "framework", "runs", "images/s", "interval of the median", "ratio"},
                            sample_row("A", own, "1")};
  std::string verdicts;
  for (const ComparedPair& pair : report.comparison.pairs) {
    if (pair.sample != place) continue;
    rows.push_back(
        sample_row(label_of(pair.second_set), pair.second, fmt::format("{:.4f}", pair.comparison.ratio)));
    verdicts += verdict_lines(pair);
  }
  if (verdicts.empty() && report.sets.size() > 1) return "";
  return "\n" + hanging_lines(configuration_text(own.configuration), "  ", "") +
         padded_table(rows, "llrrlr") + verdicts +
         (report.published.empty() ? "" : published_text(report.published[place]));
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

std::string verdict_name(SpeedVerdict verdict) {
  static constexpr std::array kNames{"faster", "slower", "none_shown", "too_few"};
  return kNames[static_cast<std::size_t>(verdict)];
}

// Members of plumbline.compare/1.
struct ScalingReport {
  std::string path;
  CurveScaling curve;
  static void fields(auto& self, auto&& each) {
    each("path", self.path), each("configuration", self.curve.configuration);
    each("losses", self.curve.losses);
  }
};

struct LeftOut {
  std::string path, reason;
  static void fields(auto& self, auto&& each) { each("path", self.path), each("reason", self.reason); }
};

}  // namespace

ComparedSample compared_sample(const SampleSet& set, const Sample& sample) {
  return {set.name, sample.configuration, sample.origins(), sample.figures()};
}

SetComparison compare_sets(std::span<const SampleSet> sets, const CompareOptions& options) {
  SetComparison result;
  for (const SampleSet& set : sets)
    for (const Sample& sample : set.loaded.samples)
      if (const std::string mixture = mixture_text(sample); !mixture.empty())
        result.notes.push_back(fmt::format("in {}, {}", set.name, mixture));
  for (std::size_t i = 1; i < sets.size(); ++i) {
    const auto pairs = pair_samples(sets[0].loaded.samples, sets[i].loaded.samples, options.force);
    if (pairs.empty()) refuse(sets[0], sets[i]);
    for (const SamplePair& pair : pairs) {
      const Comparison comparison =
          compare(pair.first->figures(), pair.second->figures(), options.min_effect);
      result.pairs.push_back(
          {.sample = static_cast<std::size_t>(pair.first - sets[0].loaded.samples.data()),
           .second_set = i,
           .first = compared_sample(sets[0], *pair.first),
           .second = compared_sample(sets[i], *pair.second),
           .comparison = comparison,
           .verdict = verdict_text(comparison, options.min_effect),
           .differences = pair.differences,
           .settings = setting_differences(pair.first->configuration, pair.second->configuration)});
    }
    add_surroundings(sets[0], sets[i], pairs, result.notes);
    add_notes(sets[0], sets[i], pairs, result.notes);
    add_notes(sets[i], sets[0], pairs, result.notes);
  }
  std::ranges::stable_sort(result.pairs, {}, &ComparedPair::sample);
  return result;
}

std::string compare_text(const CompareReport& report) {
  std::string text;
  for (std::size_t i = 0; i < report.sets.size(); ++i)
    text += fmt::format("{}: {}\n", label_of(i), report.sets[i].name);
  std::string scaling;
  for (std::size_t i = 0; i < report.sets.size(); ++i) scaling += scaling_lines(label_of(i), report.sets[i]);
  if (!scaling.empty()) text += "\nscaling\n" + scaling;
  for (std::size_t i = 0; i < report.sets.front().loaded.samples.size(); ++i) text += sample_text(i, report);
  return text;
}

void ComparedSample::fields(auto& self, auto&& each) {
  each("path", self.path), each("framework", self.configuration.framework);
  each("configuration", self.configuration), each("runs", self.runs);
  each("images_per_second", self.figures, Field{"as many as runs"});
  each("median", median(self.figures));
  each("median_interval", median_interval(self.figures), Field{.null_if_nothing = true});
}

void ComparedPair::fields(auto& self, auto&& each) {
  const Comparison& of = self.comparison;
  each("first", self.first), each("second", self.second);
  each("ratio", of.ratio, Field{"of the medians, second over first"});
  each("ratio_interval", of.ratio_range);
  each("p_two_sided", of.test.p_two_sided);
  each("verdict", verdict_name(of.verdict), Field{"faster, slower, none_shown or too_few"});
  each("smallest_shown", of.smallest_shown, Field{"that these runs would have shown; null: none"});
  each("text", self.verdict), each("forced", !self.differences.empty());
  each("differences", self.differences, Field{"of the configurations, if forced"});
  each("settings", self.settings, Field{"that differ: how the work was done"});
}

void PublishedBeside::fields(auto& self, auto&& each) {
  each("sample", self.sample), each("nearest", self.nearest);
}

void CompareReport::fields(auto& self, auto&& each) {
  std::vector<ScalingReport> scaling;
  std::vector<LeftOut> left_out;
  for (const SampleSet& set : self.sets) {
    for (CurveScaling& curve : scaling_of(set.loaded.samples))
      scaling.push_back({set.name, std::move(curve)});
    for (const Note& bad : set.loaded.bad) left_out.push_back({bad.subject, bad.text});
  }
  each("min_effect", self.min_effect), each("significance", kSignificance);
  each("scaling", scaling), each("comparisons", self.comparison.pairs);
  each("published", self.published), each("notes", self.comparison.notes), each("left_out", left_out);
}

const Document kCompareDocument =
    document_of<CompareReport>("plumbline.compare/1", "Runs next to runs: plumbline compare --json.");

Json compare_json(const CompareReport& report) {
  return document_json(kCompareDocument.name, report);
}

}  // namespace plumb
