// Latency and bandwidth of every pair of hosts, measured over MPI: for bench_allreduce --pairs and for the
// probe before a run.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/links/slow_links.h"
#include "comm/job.h"
#include "comm/link_probe.h"
#include "results/record/links.h"

namespace plumb {

// Where one end of every pair stands: a host's first rank; on a single host each rank.
struct Place {
  int rank = 0;
  std::string name;  // of the host; on a single host "rank 2"
};
std::vector<std::string> names_of(std::span<const Place> places);

// A rank's place in the job.
struct RankPlace {
  int local_rank = 0, local_size = 1;
  std::string host;
};
// The places of all ranks, in their order. Every rank calls it.
std::vector<RankPlace> rank_places(const Job& job);
// `are_hosts`: the first rank of each host, else every rank.
std::vector<Place> places_of(const std::vector<RankPlace>& ranks, bool are_hosts);
// In the order of their first ranks, with their ranks.
std::vector<LinkHost> hosts_of(const std::vector<RankPlace>& ranks);

Link link_of(const LinkSpeed& speed);

struct PairsEffort {
  ProbeEffort probe;
  std::size_t most_rounds = static_cast<std::size_t>(-1);  // fewer than places: every place has as many pairs
  int attempts_alone = 3;                                  // for links that seem slow
  std::size_t most_alone = static_cast<std::size_t>(-1);   // of these links, per attempt
  SlowLimits limits;
};

// Measures pairs of `places` in rounds, side by side, then those that seem slow once more, alone: side by
// side they may have shared a switch or a host's cores with others. Returns them ordered by their places,
// with speeds on rank 0 only. `told`: called on rank 0 in front of each round with a line for people. Every
// rank calls it.
std::vector<MeasuredPair> measure_pairs_of(const Job& job, std::span<const Place> places,
                                           const PairsEffort& effort,
                                           const std::function<void(const std::string&)>& told);

}  // namespace plumb
