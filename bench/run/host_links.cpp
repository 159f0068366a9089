#include "bench/run/host_links.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/machine/host_addresses.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/links/addresses_of_hosts.h"
#include "bench/links/host_pairs.h"
#include "comm/late_alarm.h"
#include "comm/launched_as.h"

namespace plumb {
namespace {

constexpr std::chrono::seconds kPatienceForProbe{60};
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

// Says so if it takes far longer than kProbeSeconds: a pair that can't meet waits for ever.
std::vector<MeasuredPair> measured_in_time(const Job& job, const std::vector<Place>& places,
                                           const PairsEffort& effort, Messages& messages) {
  const LateAlarm alarm(kPatienceForProbe, [&messages] {
    messages.warn(fmt::format(
        "the probe of the links between hosts has run for {} s and goes on: two hosts can't reach each "
        "other, "
        "or a link is very slow; name the network that joins all hosts (docs/cluster.md), or leave the probe "
        "out by --no-probe",
        kPatienceForProbe.count()));
  });
  return measure_pairs_of(job, places, effort, [](const std::string&) {});
}

void warn(const std::vector<std::string>& sentences, bool quiet) {
  Messages messages(stderr, terminal_of(stderr), quiet ? Loudness::quiet : Loudness::usual);
  for (const std::string& sentence : sentences) messages.warn(sentence);
}

std::vector<std::string> address_warnings(const std::vector<HostAddresses>& hosts) {
  return carries_over_tcp() ? shared_address_warnings(hosts, chosen_interfaces())
                            : std::vector<std::string>();
}

}  // namespace

JobStart AddressCheck::at_start() {
  JobStart start;
  if (compares_)
    start.before_messages = [this](const Job& job) {
      const std::vector<HostAddresses> hosts = early_host_addresses(job);
      compared_ = !hosts.empty();
      warn(address_warnings(hosts), quiet_);
    };
  start.messages_are_late = [quiet = quiet_] {
    warn({late_messages_text(addresses_of_this_host(), kPatienceForFirstMessages, chosen_interfaces())},
         quiet);
  };
  return start;
}

void AddressCheck::after_start(const Job& job) {
  if (!compares_ || job.nodes() < 2) return;
  const std::vector<HostAddresses> hosts = host_addresses(job);
  if (!compared_ && job.rank() == 0) warn(address_warnings(hosts), quiet_);
}

void warn_of_idle_places(bool quiet) {
  if (const int tasks = slurm_tasks_without_launcher(); tasks > 0)
    warn({fmt::format("this Slurm job has {} tasks, but this process was started alone and runs as a single "
                      "rank; start it with srun or mpirun to use them all",
                      tasks)},
         quiet);
  const auto [rank, ranks] = launched_as();
  const std::size_t hosts = hosts_given_to_mpirun(parents_command_line());
  if (rank == 0 && hosts > static_cast<std::size_t>(ranks))
    warn({fmt::format("mpirun was given {} hosts but starts {}: hosts without a rank don't take part; "
                      "give -np {} or more to use them all",
                      hosts, counted(ranks, "rank"), hosts)},
         quiet);
}

std::optional<Links> probe_host_links(const Job& job, Messages& messages) {
  if (job.nodes() < 2) return std::nullopt;
  const std::vector<RankPlace> ranks = rank_places(job);
  const std::vector<Place> places = places_of(ranks, true);
  const std::vector<std::string> names = names_of(places);
  const PairsEffort effort = effort_for(places.size());
  const std::vector<MeasuredPair> pairs = measured_in_time(job, places, effort, messages);
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
