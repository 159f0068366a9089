#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/text.h"
#include "results/anomalies/flags.h"
#include "results/statistics/robust.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// Shorter is chance: one sample of twenty.
constexpr double kLeastThrottledShare = 0.05;
constexpr std::size_t kMostGpusNamed = 3;
// A slow rank stands apart from the others by this part of a step (M2 asks for a tenth to be found; a mean
// over a window of 100 steps with 3 % of noise each differs by 0.4 % from rank to rank) …
constexpr double kLeastSlowness = 0.03;
// … and by so many deviations of the others, whose places in a ring make them wait unequally, too.
constexpr double kLeastDeviations = 4;

// "8 to 15", "3 and 5", "1, 4 and 6 to 8"
std::string ranks_text(const std::vector<std::size_t>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - begin < 3) end = begin + 1;
    parts.push_back(end == begin + 1 ? std::to_string(ranks[begin])
                                     : fmt::format("{} to {}", ranks[begin], ranks[end - 1]));
    begin = end;
  }
  std::string text = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) text += (i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

// Ranks by how long they wait for others, those that wait least first, and how many of them stand apart.
struct SlowRanks {
  std::vector<std::size_t> by_wait;
  std::size_t slow_count = 0;
  double others_wait = 0;  // median
};

// The widest gap between neighbours in the order of waiting parts slow ranks, at most half of all, from the
// others.
SlowRanks slow_ranks(const std::vector<double>& waits, double step_seconds) {
  SlowRanks slow{.by_wait = std::vector<std::size_t>(waits.size())};
  std::iota(slow.by_wait.begin(), slow.by_wait.end(), 0);
  std::ranges::stable_sort(slow.by_wait, {}, [&](std::size_t rank) { return waits[rank]; });
  double widest = 0;
  std::size_t split = 0;
  for (std::size_t i = 1; 2 * i <= waits.size(); ++i) {
    const double gap = waits[slow.by_wait[i]] - waits[slow.by_wait[i - 1]];
    if (gap > widest) {
      widest = gap;
      split = i;
    }
  }
  std::vector<double> others;
  for (std::size_t i = split; i < waits.size(); ++i) others.push_back(waits[slow.by_wait[i]]);
  slow.others_wait = median(others);
  const double spread = median_deviation(others, slow.others_wait);
  if (widest >= kLeastSlowness * step_seconds && widest >= kLeastDeviations * spread) slow.slow_count = split;
  return slow;
}

}  // namespace

std::vector<Flag> throttling_flags(const std::vector<GpuRecord>& gpus) {
  std::vector<const GpuRecord*> throttled;
  for (const GpuRecord& gpu : gpus)
    if (gpu.throttled_share >= kLeastThrottledShare) throttled.push_back(&gpu);
  std::ranges::stable_sort(throttled, std::ranges::greater{}, &GpuRecord::throttled_share);
  std::vector<Flag> flags;
  for (const GpuRecord* gpu : throttled) {
    if (flags.size() == kMostGpusNamed) {
      const std::size_t more = throttled.size() - kMostGpusNamed;
      flags.push_back({Flag::Kind::throttling, fmt::format("{} {} throttled, too", counted(more, "more GPU"),
                                                           more == 1 ? "was" : "were")});
      break;
    }
    flags.push_back({Flag::Kind::throttling, throttling_text(*gpu)});
  }
  return flags;
}

std::vector<Flag> slow_rank_flags(const std::vector<RankRecord>& ranks, double step_seconds) {
  if (ranks.size() < 2 || !(step_seconds > 0)) return {};
  std::vector<double> waits;
  for (const RankRecord& rank : ranks) {
    if (!std::isfinite(rank.exposed_communication_seconds)) return {};
    waits.push_back(rank.exposed_communication_seconds);
  }
  const SlowRanks slow = slow_ranks(waits, step_seconds);
  std::map<std::string, std::vector<std::size_t>> by_host;
  for (std::size_t i = 0; i < slow.slow_count; ++i)
    by_host[ranks[slow.by_wait[i]].host].push_back(slow.by_wait[i]);
  std::vector<Flag> flags;
  for (auto& [host, slow_here] : by_host) {
    std::ranges::sort(slow_here);
    std::vector<double> differences;
    for (const std::size_t rank : slow_here) differences.push_back(slow.others_wait - waits[rank]);
    const bool one = slow_here.size() == 1;
    flags.push_back({Flag::Kind::slow_rank,
                     fmt::format("{} {}{}{} {} {} slower than the others", one ? "rank" : "ranks",
                                 ranks_text(slow_here), host.empty() ? "" : " on ", host, one ? "is" : "are",
                                 whole_percent(median(differences) / step_seconds))});
  }
  return flags;
}

std::vector<Flag> failed_check_flags(const RunRecord& record) {
  std::vector<Flag> flags;
  if (record.status != "ok")
    flags.push_back(
        {Flag::Kind::failed_check, "the run failed" + (record.failure.empty() ? "" : ": " + record.failure)});
  for (const auto& [name, outcome] : record.checks.items())
    if (outcome.is_boolean() && !outcome.get<bool>())
      flags.push_back({Flag::Kind::failed_check, fmt::format("the check {} failed", name)});
  return flags;
}

}  // namespace plumb
