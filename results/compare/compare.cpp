#include "results/compare/compare.h"

#include <algorithm>

#include "base/error.h"

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

}  // namespace plumb
