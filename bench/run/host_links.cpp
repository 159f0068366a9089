#include "bench/run/host_links.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "bench/links/host_addresses.h"
#include "bench/links/host_pairs.h"

namespace plumb {
namespace {

constexpr std::size_t kMostProbeRounds = 32;
constexpr std::size_t kMostProbedAlone = 8;

// A busy host or a busy network must not look like a slow one: a rank that waits for its CPU answers some
// milliseconds late.
constexpr SlowLimits kSlowInRuns{.bandwidth_share = 0.4, .latency_factor = 10, .latency_seconds = 0.02};

// Shares kProbeSeconds out over the rounds. A round takes about three times its messages, as they grow.
PairsEffort effort_for(std::size_t hosts) {
  constexpr double kLongestMessage = 0.01, kShortestMessage = 1e-3;
  const std::size_t rounds = std::min(hosts - 1 + hosts % 2, kMostProbeRounds);
  PairsEffort effort{.most_rounds = kMostProbeRounds,
                     .attempts_alone = 3,
                     .most_alone = kMostProbedAlone,
                     .limits = kSlowInRuns};
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

}  // namespace

void warn_of_shared_addresses(const Job& job, bool quiet) {
  const std::vector<std::string> warnings = early_address_warnings(job);
  Messages messages(stderr, terminal_of(stderr), quiet ? Loudness::quiet : Loudness::usual);
  for (const std::string& warning : warnings) messages.warn(warning);
}

std::optional<Links> probe_host_links(const Job& job, Messages& messages) {
  if (job.nodes() < 2) return std::nullopt;
  const std::vector<RankPlace> ranks = rank_places(job);
  const std::vector<Place> places = places_of(ranks, true);
  const std::vector<std::string> names = names_of(places);
  const PairsEffort effort = effort_for(places.size());
  const std::vector<MeasuredPair> pairs = measure_pairs_of(job, places, effort, [](const std::string&) {});
  if (job.rank() != 0) return std::nullopt;
  const std::string warning = slow_warning(find_slow(places.size(), pairs, effort.limits), names);
  if (!warning.empty()) messages.warn(warning);
  messages.detail("probe: " + probe_text(pairs));
  // links.json knows hosts by their names.
  if (std::set<std::string>(names.begin(), names.end()).size() < names.size()) return std::nullopt;
  Links links{.comm = "mpi", .hosts = hosts_of(ranks)};
  for (const MeasuredPair& pair : pairs)
    if (pair.link.bytes_per_second > 0)
      links.pairs.push_back({names[pair.first], names[pair.second], pair.link});
  return links.pairs.empty() ? std::nullopt : std::optional(links);
}

}  // namespace plumb
