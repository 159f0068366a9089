// How long a step waits, and for what: transfers, data, ranks for which the others wait.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/record/schema.h"

namespace plumb {

// Ranks by how long they wait for others, those that wait least first, and how many of them stand apart.
struct SlowRanks {
  std::vector<std::size_t> by_wait;
  std::size_t slow_count = 0;
  double others_wait = 0;  // median of the ranks that don't stand apart
};

// `waits`: seconds per step, two ranks or more. The widest gap between neighbors in the order of waiting
// parts slow ranks, at most half of all, from the others.
SlowRanks slow_ranks(const std::vector<double>& waits, double step_seconds);

// What ranks wait in collectives, told apart: the rank that waits least waits for the transfer alone, and
// what the others wait beyond that (their median) they wait for it.
struct WaitParts {
  double transfer = 0, slowest_rank = 0;  // seconds per step
};
// `waits`: two ranks or more.
WaitParts wait_parts(std::vector<double> waits);

// Seconds per step that each rank waited in collectives; empty if one of them isn't known.
std::vector<double> rank_waits(std::span<const RankRecord> ranks);

// The slow ranks in their order, by host.
std::map<std::string, std::vector<std::size_t>> slow_by_host(const SlowRanks& slow,
                                                             std::span<const RankRecord> ranks);

// "rank 5 on node2", "ranks 8 to 15 on node2"; without `host` only the ranks.
std::string ranks_on_host_text(const std::vector<std::size_t>& ranks, const std::string& host);

// Waits of a typical rank, seconds per step.
struct StepWaits {
  double communication = 0, slow_ranks = 0, data = 0;
  bool ranks_known = true;      // false: an old record, whose communication includes the wait for slow ranks
  std::string slow_rank_names;  // "rank 13 on node2"; empty: none stands apart
};
// Nothing if the record doesn't know how long rank 0 waited.
std::optional<StepWaits> step_waits(const RunRecord& record, double step_seconds);

}  // namespace plumb
