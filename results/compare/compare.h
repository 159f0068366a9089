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

// What a table calls it: "A", "B", …; after "Z" "27", "28", …
std::string label_of(std::size_t set);

struct SamplePair {
  const Sample* first = nullptr;
  const Sample* second = nullptr;
  std::vector<Difference> differences;  // empty unless forced
};

struct ComparedPair {
  SamplePair samples;
  std::size_t second_set = 1;        // its place among the sets
  std::vector<Difference> settings;  // how the work was done: setting_differences()
  Comparison comparison;
};

struct SetComparison {
  std::vector<ComparedPair> pairs;  // by sample of the first set, then by set
  std::vector<std::string> notes;   // samples that have no counterpart
};

struct CompareOptions {
  Criteria criteria;
  bool force = false;
};

// The first set against each other one, which must outlive what is returned. Each sample of the first with
// every one of the other whose configuration differs in nothing that both know; those that also differ in
// settings only if one of them has no counterpart of its own settings. With `force` a sample of the first
// without such gets the one of the other that differs least. Throws Error(bad_data) that
// names each difference where a set has nothing of the first one's configurations and `force` isn't given.
SetComparison compare_sets(std::span<const SampleSet> sets, const CompareOptions& options);

// One sample of the first set and the published results nearest to it.
struct PublishedBeside {
  const Sample* sample = nullptr;
  std::vector<NearestPublished> nearest;
};

struct CompareReport {
  std::span<const SampleSet> sets;
  SetComparison comparison;
  std::vector<PublishedBeside> published;
  Criteria criteria;
};

// Within 100 columns but for long paths: the verdict on each set's scaling, per sample of the first set a
// table (runs, median, its interval, ratio), the verdicts, what differs where that was forced, and published
// numbers.
std::string compare_text(const CompareReport& report);
Json compare_json(const CompareReport& report);
extern const Document kCompareDocument;

}  // namespace plumb
