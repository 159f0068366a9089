#include "bench/links/host_pairs.h"

#include <algorithm>

#include "base/text.h"

namespace plumb {
namespace {

using Told = std::function<void(const std::string&)>;

std::size_t index_of(std::span<const Place> places, int rank) {
  return static_cast<std::size_t>(std::ranges::find(places, rank, &Place::rank) - places.begin());
}

std::vector<MeasuredPair> measure_in_rounds(const Job& job, std::span<const Place> places,
                                            const PairsEffort& effort, const Told& told) {
  std::vector<int> ranks;
  for (const Place& place : places) ranks.push_back(place.rank);
  auto rounds = pair_rounds(ranks);
  rounds.resize(std::min(rounds.size(), effort.most_rounds));
  std::vector<MeasuredPair> pairs;
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    if (job.rank() == 0)
      told(fmt::format("pairs, round {} of {}: {}", round + 1, rounds.size(),
                       counted(rounds[round].size(), "pair")));
    const std::vector<LinkSpeed> speeds = probe_pairs(job, rounds[round], effort.probe);
    for (std::size_t i = 0; i < rounds[round].size(); ++i)
      pairs.push_back({index_of(places, rounds[round][i].first), index_of(places, rounds[round][i].second),
                       speeds.empty() ? Link{} : link_of(speeds[i])});
  }
  std::ranges::sort(pairs, {}, [](const MeasuredPair& pair) { return std::pair(pair.first, pair.second); });
  return pairs;
}

bool is_blamed(const MeasuredPair& pair, const std::vector<SlowLink>& slow) {
  return std::ranges::any_of(slow, [&](const SlowLink& one) {
    if (one.other) return pair.first == one.place && pair.second == *one.other;
    return pair.first == one.place || pair.second == one.place;
  });
}

// Keeps the better figures. Rank 0 knows which links seem slow, and tells the others. Returns whether there
// was one.
bool measure_slow_again(const Job& job, std::span<const Place> places, const PairsEffort& effort,
                        std::vector<MeasuredPair>& pairs, const Told& told) {
  std::vector<float> again(pairs.size(), 0);
  const std::vector<SlowLink> slow = find_slow(places.size(), pairs, effort.limits);
  std::size_t count = 0;
  for (std::size_t i = 0; i < again.size() && count < effort.most_alone; ++i)
    if (is_blamed(pairs[i], slow)) again[i] = 1, ++count;
  job.broadcast(again.data(), again.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    if (again[i] == 0) continue;
    MeasuredPair& pair = pairs[i];
    const Place &first = places[pair.first], &second = places[pair.second];
    if (job.rank() == 0) told(fmt::format("{} - {} once more, alone", first.name, second.name));
    const RankPair ranks{first.rank, second.rank};
    for (const LinkSpeed& speed : probe_pairs(job, std::span(&ranks, 1), effort.probe)) {
      pair.link.latency_seconds = std::min(pair.link.latency_seconds, speed.latency_seconds);
      pair.link.bytes_per_second = std::max(pair.link.bytes_per_second, speed.bytes_per_second);
    }
  }
  return std::ranges::count(again, 0.0F) < std::ssize(again);
}

}  // namespace

Link link_of(const LinkSpeed& speed) {
  return {.latency_seconds = speed.latency_seconds, .bytes_per_second = speed.bytes_per_second};
}

std::vector<std::string> names_of(std::span<const Place> places) {
  std::vector<std::string> names;
  for (const Place& place : places) names.push_back(place.name);
  return names;
}

// As every rank gives it to Job::all_gather: "local_rank local_size host".
std::vector<RankPlace> rank_places(const Job& job) {
  std::vector<RankPlace> places;
  for (const std::string& text :
       job.all_gather(fmt::format("{} {} {}", job.local_rank(), job.local_size(), job.host()))) {
    const std::vector<std::string> words = split(text, ' ');
    places.push_back({std::stoi(words[0]), std::stoi(words[1]), words[2]});
  }
  return places;
}

std::vector<Place> places_of(const std::vector<RankPlace>& ranks, bool are_hosts) {
  std::vector<Place> places;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (!are_hosts)
      places.push_back({static_cast<int>(rank), fmt::format("rank {}", rank)});
    else if (ranks[rank].local_rank == 0)
      places.push_back({static_cast<int>(rank), ranks[rank].host});
  return places;
}

std::vector<LinkHost> hosts_of(const std::vector<RankPlace>& ranks) {
  std::vector<LinkHost> hosts;
  for (const RankPlace& rank : ranks)
    if (rank.local_rank == 0) hosts.push_back({rank.host, rank.local_size});
  return hosts;
}

std::vector<MeasuredPair> measure_pairs_of(const Job& job, std::span<const Place> places,
                                           const PairsEffort& effort, const Told& told) {
  std::vector<MeasuredPair> pairs = measure_in_rounds(job, places, effort, told);
  for (int i = 0; i < effort.attempts_alone && measure_slow_again(job, places, effort, pairs, told);) ++i;
  return pairs;
}

}  // namespace plumb
