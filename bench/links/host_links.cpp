#include "bench/links/host_links.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/text.h"
#include "bench/links/link_probe.h"
#include "results/anomalies/slow_links.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

using Say = std::function<void(const std::string&)>;

constexpr int kAttemptsAlone = 3;

// A host. Its first rank measures the links to other hosts, its second rank the link within the host.
struct Place {
  int rank = 0;
  LinkHost host;
  std::optional<int> second_rank = {};  // none on a host with one rank

  const std::string& name() const { return host.name; }
};

struct PairsEffort {
  ProbeEffort probe;
  std::size_t most_rounds = static_cast<std::size_t>(-1);  // fewer than places: every place has as many pairs
  // Links that seem slow and are measured again, per attempt.
  std::size_t most_alone = static_cast<std::size_t>(-1);
  SlowLimits limits;
};

// In the order of their first ranks. Every rank calls it.
std::vector<Place> places_of(const Job& job) {
  std::vector<Place> places;
  int rank = 0;
  for (const std::string& text :
       job.all_gather(fmt::format("{} {} {}", job.local_rank(), job.local_size(), job.host()))) {
    const std::vector<std::string> words = split(text, ' ');  // local rank, local size, host
    const int local_rank = std::stoi(words[0]);
    if (local_rank == 0) places.push_back({rank, {words[2], std::stoi(words[1])}});
    if (local_rank == 1)
      if (std::optional<int>& second = find_in(places, words[2], &Place::name)->second_rank; !second)
        second = rank;
    ++rank;
  }
  return places;
}

std::vector<MeasuredPair> measure_in_rounds(const Job& job, std::span<const Place> places,
                                            const PairsEffort& effort, const Say& say) {
  auto rounds = pair_rounds(places.size());
  rounds.resize(std::min(rounds.size(), effort.most_rounds));
  std::vector<MeasuredPair> pairs;
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    if (job.rank() == 0)
      say(fmt::format("pairs, round {} of {}: {}", round + 1, rounds.size(),
                      counted(rounds[round].size(), "pair")));
    const auto ranks = mapped(rounds[round], [&](const auto& pair) {
      return RankPair{places[pair.first].rank, places[pair.second].rank};
    });
    const std::vector<Link> links = probe_pairs(job, ranks, effort.probe);
    for (std::size_t i = 0; i < links.size(); ++i)
      pairs.push_back({rounds[round][i].first, rounds[round][i].second, links[i]});
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

// Keeps the better figures. Returns whether a link that seemed slow gained more than a tenth.
bool measure_slow_again(const Job& job, std::span<const Place> places, const PairsEffort& effort,
                        std::vector<MeasuredPair>& pairs, const Say& say) {
  const std::vector<SlowLink> slow = find_slow(places.size(), pairs, effort.limits);
  std::size_t count = 0;
  bool gained = false;
  for (MeasuredPair& pair : pairs) {
    if (count == effort.most_alone || !is_blamed(pair, slow)) continue;
    ++count;
    const Place &first = places[pair.first], &second = places[pair.second];
    if (job.rank() == 0) say(fmt::format("{} - {} once more, alone", first.name(), second.name()));
    const RankPair ranks{first.rank, second.rank};
    const Link link = probe_pairs(job, std::span(&ranks, 1), effort.probe).front();
    const bool is_sooner = 1.1 * link.latency_seconds < pair.link.latency_seconds;
    gained = keep_better(pair.link, link) || is_sooner || gained;
  }
  return gained;
}

// Returns the pairs ordered by their places. Every rank calls it.
std::vector<MeasuredPair> measure_pairs_of(const Job& job, std::span<const Place> places,
                                           const PairsEffort& effort, const Say& say) {
  std::vector<MeasuredPair> pairs = measure_in_rounds(job, places, effort, say);
  for (int i = 0; i < kAttemptsAlone && measure_slow_again(job, places, effort, pairs, say);) ++i;
  return pairs;
}

// The probe before a run takes about a second, without the time to connect, and longer over very slow links.
constexpr PairsEffort kEffortBeforeRun{.probe = {.round_trips = 20, .messages = 4, .message_seconds = 0.003},
                                       .most_rounds = 32,
                                       .most_alone = 8,
                                       .limits = kSlowInRuns};

// Between the first two ranks of every host that has two.
std::optional<Link> slowest_within_hosts(const Job& job, const std::vector<Place>& places) {
  std::vector<RankPair> pairs;
  for (const Place& place : places)
    if (place.second_rank) pairs.push_back({place.rank, *place.second_rank});
  const std::vector<Link> links = probe_pairs(job, pairs);
  if (links.empty()) return std::nullopt;
  return *std::ranges::min_element(links, {}, &Link::bytes_per_second);
}

std::vector<std::string> findings(const std::vector<std::string>& names, const std::vector<SlowLink>& slow) {
  if (names.size() == 2) return {"two hosts have one link, and there is none to compare it with"};
  if (slow.empty()) return {"no host or link is slower than the others"};
  return mapped(slow, [&](const SlowLink& one) { return slow_text(one, names); });
}

MeasuredPairs::Ring ring_of(const Job& job, const std::vector<Place>& places) {
  return {mapped(places, &Place::name), probe_ring(job, mapped(places, &Place::rank))};
}

}  // namespace

std::vector<LinkHost> hosts_of(const Job& job) {
  return mapped(places_of(job), &Place::host);
}

MeasuredPairs measure_pairs(const Job& job, const Say& say) {
  const std::vector<Place> places = places_of(job);
  const std::vector<std::string> names = mapped(places, &Place::name);
  const std::vector<MeasuredPair> pairs = measure_pairs_of(job, places, {}, say);
  const std::vector<SlowLink> slow = find_slow(names.size(), pairs);
  MeasuredPairs measured{.links = {.comm = "mpi", .hosts = mapped(places, &Place::host)},
                         .rings = {ring_of(job, places)},
                         .findings = findings(names, slow)};
  // Hosts that are slow as a whole leave the second ring.
  std::vector<Place> rest = places;
  for (const SlowLink& one : slow)
    if (!one.other) std::erase_if(rest, [&](const Place& place) { return place.name() == names[one.place]; });
  if (rest.size() >= 2 && rest.size() < names.size()) measured.rings.push_back(ring_of(job, rest));
  for (const MeasuredPair& pair : pairs)
    measured.links.pairs.push_back({names[pair.first], names[pair.second], pair.link});
  measured.links.between_hosts = Link{
      .latency_seconds = median(mapped(pairs, [](const auto& pair) { return pair.link.latency_seconds; })),
      .bytes_per_second = measured.rings.front().bytes_per_second};
  measured.links.within_host = slowest_within_hosts(job, places);
  return measured;
}

std::optional<Links> probe_host_links(const Job& job, Messages& messages) {
  if (job.nodes() < 2) return std::nullopt;
  const std::vector<Place> places = places_of(job);
  const std::vector<std::string> names = mapped(places, &Place::name);
  const auto pairs = measure_pairs_of(job, places, kEffortBeforeRun, [](const std::string&) {});
  if (job.rank() != 0) return std::nullopt;
  const std::string warning = slow_warning(find_slow(names.size(), pairs, kEffortBeforeRun.limits), names);
  if (!warning.empty()) messages.warn(warning);
  // links.json identifies hosts by their names.
  if (std::set<std::string>(names.begin(), names.end()).size() < names.size()) return std::nullopt;
  Links links{.comm = "mpi", .hosts = mapped(places, &Place::host)};
  for (const MeasuredPair& pair : pairs)
    if (pair.link.bytes_per_second > 0)
      links.pairs.push_back({names[pair.first], names[pair.second], pair.link});
  return links.pairs.empty() ? std::nullopt : std::optional(links);
}

}  // namespace plumb
