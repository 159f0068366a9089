#include <algorithm>
#include <optional>
#include <span>

#include "base/text.h"
#include "results/anomalies/flags.h"
#include "results/scaling/slow_ranks.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

using Ranks = std::vector<std::size_t>;

// Ranks that don't stand apart.
Ranks other_ranks(const SlowRanks& slow) {
  return {slow.by_wait.begin() + static_cast<std::ptrdiff_t>(slow.slow_count), slow.by_wait.end()};
}

// Nothing if a rank's value isn't known.
std::optional<double> median_of(const Ranks& which, std::span<const RankRecord> ranks,
                                std::optional<double> RankRecord::*seconds) {
  std::vector<double> values;
  for (const std::size_t rank : which) {
    if (!(ranks[rank].*seconds)) return std::nullopt;
    values.push_back(*(ranks[rank].*seconds));
  }
  return median(values);
}

// "computes 412 ms a step where the median is 301 ms", or waits for data as much, whichever differs more;
// empty for a record that lacks these times.
std::string work_text(const SlowRanks& slow, const Ranks& slow_here, std::span<const RankRecord> ranks) {
  const Ranks others = other_ranks(slow);
  const auto computes = median_of(slow_here, ranks, &RankRecord::compute_seconds);
  const auto usual = median_of(others, ranks, &RankRecord::compute_seconds);
  const auto waits = median_of(slow_here, ranks, &RankRecord::data_wait_seconds);
  const auto usual_wait = median_of(others, ranks, &RankRecord::data_wait_seconds);
  if (!computes || !usual || !waits || !usual_wait) return "";
  const bool one = slow_here.size() == 1, by_data = *waits - *usual_wait > *computes - *usual;
  if (by_data)
    return fmt::format("{} {} a step for data where the median is {}", one ? "waits" : "wait",
                       duration_text(*waits), duration_text(*usual_wait));
  return fmt::format("{} {} a step where the median is {}", one ? "computes" : "compute",
                     duration_text(*computes), duration_text(*usual));
}

}  // namespace

std::vector<Note> slow_rank_flags(const std::vector<RankRecord>& ranks, double step_seconds) {
  const std::vector<double> waits = rank_waits(ranks);
  if (waits.size() < 2 || !(step_seconds > 0)) return {};
  const SlowRanks slow = slow_ranks(waits, step_seconds);
  std::vector<Note> flags;
  for (const auto& [host, slow_here] : slow_by_host(slow, ranks)) {
    const auto differences =
        mapped(slow_here, [&](std::size_t rank) { return slow.others_wait - waits[rank]; });
    const std::string share = whole_percent(median(differences) / step_seconds);
    const std::string names = ranks_on_host_text(slow_here, host), work = work_text(slow, slow_here, ranks);
    const bool one = slow_here.size() == 1;
    flags.push_back({"slow_rank", work.empty() ? fmt::format("{} {} {} slower than the others", names,
                                                             one ? "is" : "are", share)
                                               : fmt::format("{} {}: the others wait {} of a step for {}",
                                                             names, work, share, one ? "it" : "them")});
  }
  return flags;
}

}  // namespace plumb
