// Latency and bandwidth of every pair of hosts, measured over MPI: for bench_allreduce --pairs and for the
// probe before a run.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/console/messages.h"
#include "bench/links/link_probe.h"
#include "comm/job.h"
#include "results/anomalies/slow_links.h"
#include "results/record/links.h"

namespace plumb {

// Where one end of every pair stands: a host's first rank.
struct Place {
  int rank = 0;
  std::string name;  // of the host
};
std::vector<std::string> names_of(std::span<const Place> places);

// Places and hosts are in the order of their first ranks.
struct JobPlaces {
  std::vector<Place> places;
  std::vector<LinkHost> hosts;
  std::vector<RankPair> within_hosts;  // the first two ranks of every host that has two
};
// Every rank calls it.
JobPlaces places_of(const Job& job);

struct PairsEffort {
  ProbeEffort probe;
  std::size_t most_rounds = static_cast<std::size_t>(-1);  // fewer than places: every place has as many pairs
  std::size_t most_alone =
      static_cast<std::size_t>(-1);  // links that seem slow and are measured again, per attempt
  SlowLimits limits;
};

// Measures pairs of `places` in rounds, side by side, then those that seem slow up to three times more,
// alone, as long as that makes one faster. Returns them ordered by their places. `say`: called on rank 0
// before each round. Every rank calls it.
std::vector<MeasuredPair> measure_pairs_of(const Job& job, std::span<const Place> places,
                                           const PairsEffort& effort,
                                           const std::function<void(const std::string&)>& say);

// Before a run: measures every pair of hosts, with over 33 hosts 32 pairs of each, in about a second, and
// warns of slow ones. Returns the links on rank 0, unless hosts share a name. Every rank calls it.
std::optional<Links> probe_host_links(const Job& job, Messages& messages);

}  // namespace plumb
