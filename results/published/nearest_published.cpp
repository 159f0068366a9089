#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "models/catalogue.h"
#include "results/published/published.h"
#include "results/record/gpu_name.h"

namespace plumb {
namespace {

bool is_part(const std::string& text, const std::string& part) {
  return lower_case(text).find(lower_case(part)) != std::string::npos;
}

// Formats of 16 bits are nearer to each other than to those of 32, and the other way round.
int precision_distance(const std::string& a, const std::string& b) {
  if (a == b || a.empty() || b.empty()) return 0;
  const auto is_wide = [](const std::string& precision) { return precision.ends_with("32"); };
  return is_wide(a) == is_wide(b) ? 1 : 2;
}

// 1, 2, 4, … times as much are 0, 1, 2, … away. An unstated number counts as 1 away.
double octaves(std::int64_t own, std::int64_t other) {
  if (own <= 0) return 0;
  return other <= 0 ? 1 : std::abs(std::log2(static_cast<double>(own) / static_cast<double>(other)));
}

// Notes of figures that come behind medians and tables of whole runs: single runs, means, rounded figures.
bool is_second_rate(const PublishedResult& row) {
  const auto notes_say = [&](const char* what) { return row.notes.find(what) != std::string::npos; };
  static constexpr std::array kMarks{"individual run",        "average_speed (mean", "mean of an epoch",
                                     "rounded in the source", "scheduler's profile", "not reproduced"};
  return std::ranges::any_of(kMarks, notes_say) || row.configuration.device.empty() ||
         (notes_say("of the run, NCHW") && !notes_say("median of"));
}

// A device without a name may be of any kind.
bool is_same_kind(const std::string& own, const std::string& other) {
  const auto is_gpu = [](const std::string& name) { return gpu_generation(name) != GpuGeneration::unknown; };
  return own.empty() || is_same_device(own, other) || (is_gpu(own) && is_gpu(other));
}

auto distance(const Configuration& own, const PublishedResult& row) {
  const Configuration& other = row.configuration;
  const auto differ = [](const auto& a, const auto& b) { return a != b; };
  return std::make_tuple(gpu_distance(own.device, other.device), octaves(own.devices(), other.devices()),
                         differ(own.nodes, other.nodes), precision_distance(own.precision, other.precision),
                         differ(own.head, other.head), octaves(own.classes, other.classes),
                         octaves(own.batch_per_device, other.batch_per_device), differ(own.data, other.data),
                         differ(own.model, other.model), is_second_rate(row), !row.inconsistency.empty(),
                         -row.images_per_second);
}

}  // namespace

bool matches(const PublishedResult& result, const PublishedFilter& filter) {
  const Configuration& c = result.configuration;
  const std::string texts =
      fmt::format("{} {}\n{}\n{}\n{}\n{}\n{}\n{}\n{} {}\n{}", result.framework, result.framework_version,
                  result.model, c.model, result.dataset_or_mode, c.head, result.precision, c.precision,
                  c.device, generation_name(gpu_generation(c.device)), c.case_name());
  return names_gpu(filter.gpu, c.device) &&
         std::ranges::all_of(filter.words, [&](const std::string& word) { return is_part(texts, word); });
}

std::vector<NearestPublished> nearest_among(std::span<const PublishedResult> results,
                                            const Configuration& own, std::size_t most, bool of_any_kind) {
  using Candidate = std::pair<decltype(distance(own, {})), const PublishedResult*>;
  std::vector<Candidate> best;
  for (const PublishedResult& row : results) {
    if (row.images_per_second <= 0) continue;
    if (comparable_model(row.configuration.model) != comparable_model(own.model)) continue;
    if (!of_any_kind && !is_same_kind(own.device, row.configuration.device)) continue;
    const Candidate candidate{distance(own, row), &row};
    const auto same = std::ranges::find(best, framework_family(row.framework), [](const Candidate& other) {
      return framework_family(other.second->framework);
    });
    if (same == best.end())
      best.push_back(candidate);
    else if (candidate.first < same->first)
      *same = candidate;
  }
  std::ranges::stable_sort(best, {}, &Candidate::first);
  best.resize(std::min(best.size(), most));
  return mapped(best, [&](const Candidate& one) {
    return NearestPublished{*one.second, differences(own, one.second->configuration)};
  });
}

}  // namespace plumb
