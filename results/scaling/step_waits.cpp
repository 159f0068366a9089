#include "results/scaling/step_waits.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/text.h"
#include "results/scaling/slow_ranks.h"

namespace plumb {
namespace {

std::string names_of_slow_ranks(const SlowRanks& slow, std::span<const RankRecord> ranks) {
  std::string names;
  for (const auto& [host, ranks_here] : slow_by_host(slow, ranks))
    append_part(names, ranks_on_host_text(ranks_here, host), " and ");
  return names;
}

}  // namespace

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
  waits.slow_rank_names = names_of_slow_ranks(slow, record.ranks);
  return waits;
}

}  // namespace plumb
