#include <algorithm>

#include "base/text.h"
#include "results/anomalies/flags.h"
#include "results/scaling/slow_ranks.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// Shorter is chance: one sample of twenty.
constexpr double kLeastThrottledShare = 0.05;
constexpr std::size_t kMostGpusNamed = 3;

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
  const std::vector<double> waits = rank_waits(ranks);
  if (waits.size() < 2 || !(step_seconds > 0)) return {};
  const SlowRanks slow = slow_ranks(waits, step_seconds);
  std::vector<Flag> flags;
  for (const auto& [host, slow_here] : slow_by_host(slow, ranks)) {
    std::vector<double> differences;
    for (const std::size_t rank : slow_here) differences.push_back(slow.others_wait - waits[rank]);
    flags.push_back({Flag::Kind::slow_rank,
                     fmt::format("{} {} {} slower than the others", ranks_on_host_text(slow_here, host),
                                 slow_here.size() == 1 ? "is" : "are",
                                 whole_percent(median(differences) / step_seconds))});
  }
  return flags;
}

std::vector<Flag> failed_check_flags(const RunRecord& record) {
  std::vector<Flag> flags;
  if (record.status != "ok") flags.push_back({Flag::Kind::failed_check, failure_text(record)});
  for (const auto& [name, outcome] : record.checks.items())
    if (outcome.is_boolean() && !outcome.get<bool>())
      flags.push_back({Flag::Kind::failed_check, fmt::format("the check {} failed", name)});
  return flags;
}

}  // namespace plumb
