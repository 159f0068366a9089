#include "bench/links/host_links.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "comm/late_alarm.h"

namespace plumb {
namespace {

using Say = std::function<void(const std::string&)>;

constexpr int kAttemptsAlone = 3;
constexpr double kProbeSeconds = 1;  // in all, without connecting and very slow links
constexpr std::chrono::seconds kPatienceForProbe{60};
constexpr std::size_t kMostProbeRounds = 32;
constexpr std::size_t kMostProbedAlone = 8;

std::size_t index_of(std::span<const Place> places, int rank) {
  return static_cast<std::size_t>(std::ranges::find(places, rank, &Place::rank) - places.begin());
}

std::vector<MeasuredPair> measure_in_rounds(const Job& job, std::span<const Place> places,
                                            const PairsEffort& effort, const Say& say) {
  std::vector<int> ranks;
  for (const Place& place : places) ranks.push_back(place.rank);
  auto rounds = pair_rounds(ranks);
  rounds.resize(std::min(rounds.size(), effort.most_rounds));
  std::vector<MeasuredPair> pairs;
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    if (job.rank() == 0)
      say(fmt::format("pairs, round {} of {}: {}", round + 1, rounds.size(),
                      counted(rounds[round].size(), "pair")));
    const std::vector<Link> links = probe_pairs(job, rounds[round], effort.probe);
    for (std::size_t i = 0; i < rounds[round].size(); ++i)
      pairs.push_back(
          {index_of(places, rounds[round][i].first), index_of(places, rounds[round][i].second), links[i]});
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

// Keeps the better figures. Returns whether a link that seemed slow became faster.
bool measure_slow_again(const Job& job, std::span<const Place> places, const PairsEffort& effort,
                        std::vector<MeasuredPair>& pairs, const Say& say) {
  const std::vector<SlowLink> slow = find_slow(places.size(), pairs, effort.limits);
  std::size_t count = 0;
  bool gained = false;
  for (MeasuredPair& pair : pairs) {
    if (count == effort.most_alone || !is_blamed(pair, slow)) continue;
    ++count;
    const Place &first = places[pair.first], &second = places[pair.second];
    if (job.rank() == 0) say(fmt::format("{} - {} once more, alone", first.name, second.name));
    const RankPair ranks{first.rank, second.rank};
    const Link link = probe_pairs(job, std::span(&ranks, 1), effort.probe).front();
    gained = keep_better(pair.link, link) || gained;
  }
  return gained;
}

// Shares kProbeSeconds out over the rounds. A round takes about three times its messages, as they grow.
PairsEffort effort_for(std::size_t hosts) {
  constexpr double kLongestMessage = 0.01, kShortestMessage = 1e-3;
  const std::size_t rounds = std::min(hosts - 1 + hosts % 2, kMostProbeRounds);
  PairsEffort effort{.most_rounds = kMostProbeRounds, .most_alone = kMostProbedAlone, .limits = kSlowInRuns};
  effort.probe.messages = 4;
  effort.probe.round_trips = 20;
  effort.probe.message_seconds =
      std::clamp(kProbeSeconds / (3.0 * effort.probe.messages * static_cast<double>(rounds)),
                 kShortestMessage, kLongestMessage);
  return effort;
}

// "6 pairs of hosts, 912 Mbit/s to 941 Mbit/s, 35 to 60 us one way"
std::string probe_text(const std::vector<MeasuredPair>& pairs) {
  const auto bandwidth = [](const MeasuredPair& pair) { return pair.link.bytes_per_second; };
  const auto latency = [](const MeasuredPair& pair) { return pair.link.latency_seconds; };
  const auto [slowest, fastest] = std::ranges::minmax_element(pairs, {}, bandwidth);
  const auto [soonest, latest] = std::ranges::minmax_element(pairs, {}, latency);
  return fmt::format("{} of hosts over MPI, {} to {}, {:.0f} to {:.0f} us one way",
                     counted(pairs.size(), "pair"), bits_text(bandwidth(*slowest)),
                     bits_text(bandwidth(*fastest)), latency(*soonest) * kMicrosecondsInSecond,
                     latency(*latest) * kMicrosecondsInSecond);
}

// Says so if it takes far longer than kProbeSeconds: a pair that can't meet waits for ever.
std::vector<MeasuredPair> measured_in_time(const Job& job, const std::vector<Place>& places,
                                           const PairsEffort& effort, Messages& messages) {
  const LateAlarm alarm(kPatienceForProbe, [&messages] {
    messages.warn(
        fmt::format("hosts do not reach each other, or links are very slow: their probe has run for {} s; "
                    "see docs/reference/environment.md, or pass --no-probe",
                    kPatienceForProbe.count()));
  });
  return measure_pairs_of(job, places, effort, [](const std::string&) {});
}

}  // namespace

std::vector<std::string> names_of(std::span<const Place> places) {
  std::vector<std::string> names;
  for (const Place& place : places) names.push_back(place.name);
  return names;
}

JobPlaces places_of(const Job& job) {
  JobPlaces all;
  std::map<std::string, int> first_of_host;
  int rank = 0;
  for (const std::string& text :
       job.all_gather(fmt::format("{} {} {}", job.local_rank(), job.local_size(), job.host()))) {
    const std::vector<std::string> words = split(text, ' ');  // local rank, local size, host
    const int local_rank = std::stoi(words[0]);
    const std::string& host = words[2];
    if (local_rank == 0) {
      first_of_host.emplace(host, rank);
      all.hosts.push_back({host, std::stoi(words[1])});
      all.places.push_back({rank, host});
    }
    if (local_rank == 1) all.within_hosts.push_back({first_of_host.at(host), rank});
    ++rank;
  }
  return all;
}

std::vector<MeasuredPair> measure_pairs_of(const Job& job, std::span<const Place> places,
                                           const PairsEffort& effort, const Say& say) {
  std::vector<MeasuredPair> pairs = measure_in_rounds(job, places, effort, say);
  for (int i = 0; i < kAttemptsAlone && measure_slow_again(job, places, effort, pairs, say);) ++i;
  return pairs;
}

std::optional<Links> probe_host_links(const Job& job, Messages& messages) {
  if (job.nodes() < 2) return std::nullopt;
  const JobPlaces all = places_of(job);
  const std::vector<std::string> names = names_of(all.places);
  const PairsEffort effort = effort_for(names.size());
  const std::vector<MeasuredPair> pairs = measured_in_time(job, all.places, effort, messages);
  if (job.rank() != 0) return std::nullopt;
  const std::string warning = slow_warning(find_slow(names.size(), pairs, effort.limits), names);
  if (!warning.empty()) messages.warn(warning);
  messages.detail("probe: " + probe_text(pairs));
  // links.json identifies hosts by their names.
  if (std::set<std::string>(names.begin(), names.end()).size() < names.size()) return std::nullopt;
  Links links{.comm = "mpi", .hosts = all.hosts};
  for (const MeasuredPair& pair : pairs)
    if (pair.link.bytes_per_second > 0)
      links.pairs.push_back({names[pair.first], names[pair.second], pair.link});
  return links.pairs.empty() ? std::nullopt : std::optional(links);
}

}  // namespace plumb
