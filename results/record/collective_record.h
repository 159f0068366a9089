// A collective of a training step as all ranks timed it: seconds and bus bandwidth. The "collectives" of
// result.json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "results/record/value_range.h"

namespace plumb {

struct CollectiveRecord {
  std::string name;        // "bucket0.allreduce"
  std::string kind;        // "allreduce_sum", …, as name_of(Collective::Kind) spells it
  std::int64_t bytes = 0;  // of the whole buffer
  // Over the ranks. A rank's time runs from its start to its end, so it includes the wait for the last rank.
  ValueRange seconds, bus_bytes_per_second;
  int slowest_rank = 0;  // has the lowest bus bandwidth: it waited longest
  int last_rank = 0;     // has the highest: the others waited for it
};

// Bus bandwidth over algorithm bandwidth, which is bytes / seconds: 2 (n - 1) / n for an allreduce over n
// ranks, (n - 1) / n for allgather and reduce-scatter, 1 for a broadcast (nccl-tests, doc/PERFORMANCE.md); 0
// for a single rank, which sends nothing.
double bus_factor(std::string_view kind, int ranks);

// `rank_seconds`: one per rank, at least one. A rank whose clock saw no time pass counts as 0 B/s.
CollectiveRecord collective_record(std::string name, std::string kind, std::int64_t bytes,
                                   std::span<const double> rank_seconds);

nlohmann::ordered_json to_json(const CollectiveRecord& record);
// Throws Error(bad_data) that names `origin`, the key and what is wrong with it.
CollectiveRecord collective_record_from_json(const nlohmann::ordered_json& json, const std::string& origin,
                                             const std::string& prefix);

}  // namespace plumb
