#include "results/compare/compare.h"

#include <algorithm>

#include "base/error.h"

namespace plumb {
namespace {

// The sample that differs least from `own`, the first of several.
const Sample* nearest_sample(const Sample& own, std::span<const Sample> others) {
  const auto count = [&](const Sample& other) {
    return differences(own.configuration, other.configuration).size();
  };
  const auto nearest = std::min_element(
      others.begin(), others.end(), [&](const Sample& a, const Sample& b) { return count(a) < count(b); });
  return nearest == others.end() ? nullptr : &*nearest;
}

bool is_twin(const Sample& own, const Sample& other) {
  return differences(own.configuration, other.configuration).empty() &&
         setting_differences(own.configuration, other.configuration).empty();
}

bool has_twin(const Sample& own, std::span<const Sample> others) {
  return std::any_of(others.begin(), others.end(), [&](const Sample& other) { return is_twin(own, other); });
}

bool is_paired(const std::vector<SamplePair>& pairs, const Sample& sample) {
  return std::any_of(pairs.begin(), pairs.end(),
                     [&](const SamplePair& pair) { return pair.first == &sample || pair.second == &sample; });
}

std::vector<const Sample*> unpaired(std::span<const Sample> samples, const std::vector<SamplePair>& pairs) {
  std::vector<const Sample*> alone;
  for (const Sample& sample : samples)
    if (!is_paired(pairs, sample)) alone.push_back(&sample);
  return alone;
}

[[noreturn]] void refuse(const SampleSet& first, const SampleSet& second) {
  const Sample* best = nullptr;
  const Sample* counterpart = nullptr;
  std::size_t fewest = 0;
  for (const Sample& sample : first.loaded.samples) {
    const Sample* nearest = nearest_sample(sample, second.loaded.samples);
    const std::size_t count = differences(sample.configuration, nearest->configuration).size();
    if (best && count >= fewest) continue;
    best = &sample;
    counterpart = nearest;
    fewest = count;
  }
  throw Error(ExitCode::bad_data,
              "'{}' and '{}' were measured with different configurations: {}; name runs of one "
              "configuration, or give --force to set "
              "them side by side all the same",
              first.name, second.name,
              differences_text(differences(best->configuration, counterpart->configuration)));
}

void add_notes(const SampleSet& of, const SampleSet& other, const std::vector<const Sample*>& alone,
               std::vector<std::string>& notes) {
  for (const Sample* sample : alone) {
    const Sample* nearest = nearest_sample(*sample, other.loaded.samples);
    notes.push_back(
        fmt::format("{} has {}, which has no counterpart in {} (nearest: {})", of.name,
                    configuration_text(sample->configuration), other.name,
                    differences_text(differences(sample->configuration, nearest->configuration))));
  }
}

}  // namespace

Pairing pair_samples(std::span<const Sample> first, std::span<const Sample> second, bool force) {
  Pairing pairing;
  for (const Sample& own : first) {
    const std::size_t before = pairing.pairs.size();
    for (const Sample& other : second) {
      if (!differences(own.configuration, other.configuration).empty()) continue;
      const bool both_have_better = !is_twin(own, other) && has_twin(own, second) && has_twin(other, first);
      if (!both_have_better) pairing.pairs.push_back({&own, &other, {}});
    }
    if (pairing.pairs.size() > before || !force) continue;
    if (const Sample* nearest = nearest_sample(own, second))
      pairing.pairs.push_back({&own, nearest, differences(own.configuration, nearest->configuration)});
  }
  pairing.only_first = unpaired(first, pairing.pairs);
  pairing.only_second = unpaired(second, pairing.pairs);
  return pairing;
}

SetComparison compare_sets(std::span<const SampleSet> sets, const CompareOptions& options) {
  SetComparison result;
  for (std::size_t i = 1; i < sets.size(); ++i) {
    const Pairing pairing = pair_samples(sets[0].loaded.samples, sets[i].loaded.samples, options.force);
    if (pairing.pairs.empty()) refuse(sets[0], sets[i]);
    for (const SamplePair& pair : pairing.pairs)
      result.pairs.push_back({pair, i,
                              setting_differences(pair.first->configuration, pair.second->configuration),
                              compare(pair.first->figures(), pair.second->figures(), options.criteria)});
    add_notes(sets[0], sets[i], pairing.only_first, result.notes);
    add_notes(sets[i], sets[0], pairing.only_second, result.notes);
  }
  std::stable_sort(
      result.pairs.begin(), result.pairs.end(),
      [](const ComparedPair& a, const ComparedPair& b) { return a.samples.first < b.samples.first; });
  return result;
}

}  // namespace plumb
