// Runs beside runs and beside published numbers, as people and programs read them.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "results/compare/compare.h"
#include "results/published/published.h"

namespace plumb {

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
// {"schema": "plumbline.compare/1", …}
nlohmann::ordered_json compare_json(const CompareReport& report);

}  // namespace plumb
