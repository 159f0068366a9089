#include "results/scaling/slow_ranks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "base/paths.h"
#include "base/text.h"
#include "results/statistics/robust.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// A slow rank stands apart from the others by this part of a step (a rank slower by a tenth must be found; a
// mean over a window of 100 steps with 3 % of noise each differs by 0.4 % from rank to rank) …
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

}  // namespace

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
  if (widest >= kLeastSlowness * step_seconds && widest >= kLeastDeviations * spread)
    slow.slow_count = split;
  else
    slow.others_wait = median(waits);
  return slow;
}

WaitParts wait_parts(std::vector<double> waits) {
  std::ranges::sort(waits);
  return {.transfer = waits.front(), .slowest_rank = median(std::span(waits).subspan(1)) - waits.front()};
}

std::vector<double> rank_waits(std::span<const RankRecord> ranks) {
  std::vector<double> waits;
  for (const RankRecord& rank : ranks) {
    if (!std::isfinite(rank.exposed_communication_seconds)) return {};
    waits.push_back(rank.exposed_communication_seconds);
  }
  return waits;
}

std::map<std::string, std::vector<std::size_t>> slow_by_host(const SlowRanks& slow,
                                                             std::span<const RankRecord> ranks) {
  std::map<std::string, std::vector<std::size_t>> by_host;
  for (std::size_t i = 0; i < slow.slow_count; ++i)
    by_host[ranks[slow.by_wait[i]].host].push_back(slow.by_wait[i]);
  for (auto& [host, ranks_here] : by_host) std::ranges::sort(ranks_here);
  return by_host;
}

std::string ranks_on_host_text(const std::vector<std::size_t>& ranks, const std::string& host) {
  return fmt::format("{} {}{}{}", ranks.size() == 1 ? "rank" : "ranks", ranks_text(ranks),
                     host.empty() ? "" : " on ", printable(host));
}

std::optional<StepWaits> step_waits(const RunRecord& record, double step_seconds) {
  StepWaits waits{.communication = record.exposed_communication_seconds, .data = record.data_wait_seconds};
  if (!std::isfinite(waits.communication) || !std::isfinite(waits.data)) return {};
  if (record.world_size == 1) return waits;
  const std::vector<double> of_ranks = rank_waits(record.ranks);
  waits.ranks_known = of_ranks.size() >= 2;
  if (!waits.ranks_known) return waits;
  const SlowRanks slow = slow_ranks(of_ranks, step_seconds);
  waits.communication = slow.slow_count > 0 ? of_ranks[slow.by_wait.front()] : slow.others_wait;
  waits.slow_ranks = slow.others_wait - waits.communication;
  // The others' wait for rank 0 includes its wait for data.
  if (std::ranges::count(std::span(slow.by_wait).first(slow.slow_count), std::size_t{0}) > 0) waits.data = 0;
  for (const auto& [host, ranks_here] : slow_by_host(slow, record.ranks))
    append_part(waits.slow_rank_names, ranks_on_host_text(ranks_here, host), " and ");
  return waits;
}

}  // namespace plumb
