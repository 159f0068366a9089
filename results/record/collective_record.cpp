// The "collectives" of result.json.
#include <algorithm>
#include <utility>

#include "results/record/schema.h"

namespace plumb {

double bus_factor(std::string_view kind, int ranks) {
  if (kind == "broadcast") return ranks > 1 ? 1 : 0;
  const double others = (ranks - 1.0) / ranks;
  return kind.starts_with("allreduce") ? 2 * others : others;
}

CollectiveRecord collective_record(std::string name, std::string kind, std::int64_t bytes,
                                   std::span<const double> rank_seconds) {
  CollectiveRecord record{.name = std::move(name), .kind = std::move(kind), .bytes = bytes};
  const double moved =
      static_cast<double>(bytes) * bus_factor(record.kind, static_cast<int>(rank_seconds.size()));
  std::vector<double> speeds;
  for (const double seconds : rank_seconds) speeds.push_back(seconds > 0 ? moved / seconds : 0);
  const auto [shortest, longest] = std::ranges::minmax_element(rank_seconds);
  record.seconds = range_of(rank_seconds);
  record.bus_bytes_per_second = range_of(speeds);
  record.slowest_rank = static_cast<int>(longest - rank_seconds.begin());
  record.last_rank = static_cast<int>(shortest - rank_seconds.begin());
  return record;
}

}  // namespace plumb
