// Runs beside runs and published numbers: what differs in their configurations, and whether their speeds do.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "results/analysis/configuration.h"
#include "results/compare/samples.h"
#include "results/published/published.h"
#include "results/statistics/significance.h"

namespace plumb {

// The samples of one path of a command line.
struct SampleSet {
  std::string name;
  LoadedSamples loaded;
};

struct ComparedSample {
  std::string path;  // its set's name
  Configuration configuration;
  std::vector<std::string> runs;  // origins
  std::vector<double> figures;    // images/s, as many as runs
  static void fields(auto& self, auto&& each);
};
ComparedSample compared_sample(const SampleSet& set, const Sample& sample);

struct ComparedPair {
  std::size_t sample = 0, second_set = 1;  // places: of the first sample in its set, of the other one's set
  ComparedSample first, second;
  Comparison comparison;
  std::string verdict;                            // for people
  std::vector<Difference> differences, settings;  // empty unless forced; setting_differences()
  static void fields(auto& self, auto&& each);
};

struct SetComparison {
  std::vector<ComparedPair> pairs;  // by sample of the first set, then by set
  std::vector<std::string> notes;   // samples that have no counterpart
};

struct CompareOptions {
  double min_effect = kMinEffect;
  bool force = false;
};

// The first set against each other one. Each sample of the first with every one of the other whose
// configuration differs in nothing that both know; those that also differ in settings only if one of them has
// no counterpart of its own settings. With `force` a sample of the first without such gets the one of the
// other that differs least. Throws Error(bad_data) that names each difference where a set has nothing of the
// first one's configurations and `force` isn't given.
SetComparison compare_sets(std::span<const SampleSet> sets, const CompareOptions& options);

// One sample of the first set and the published results nearest to it.
struct PublishedBeside {
  ComparedSample sample;
  std::vector<NearestPublished> nearest;
  static void fields(auto& self, auto&& each);
};

struct CompareReport {
  std::span<const SampleSet> sets;
  SetComparison comparison;
  std::vector<PublishedBeside> published;  // empty, or one for each sample of the first set
  double min_effect = kMinEffect;
  static void fields(auto& self, auto&& each);
};

// Within 100 columns but for long paths: the verdict on each set's scaling, per sample of the first set a
// table (runs, median, its interval, ratio), the verdicts, what differs where that was forced, and published
// numbers.
std::string compare_text(const CompareReport& report);
Json compare_json(const CompareReport& report);
extern const Document kCompareDocument;

}  // namespace plumb
