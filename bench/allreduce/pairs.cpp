#include "bench/allreduce/pairs.h"

#include <algorithm>

#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

std::optional<Link> slowest_within_hosts(const Job& job, const std::vector<RankPair>& pairs) {
  const std::vector<Link> links = probe_pairs(job, pairs);
  if (links.empty()) return std::nullopt;
  return *std::ranges::min_element(links, {}, &Link::bytes_per_second);
}

std::vector<std::string> findings(const std::string& noun, const std::vector<std::string>& names,
                                  const std::vector<SlowLink>& slow) {
  if (names.size() < 2) return {fmt::format("one {} has no pairs: start at least two", noun)};
  if (names.size() == 2)
    return {fmt::format("two {}s have one link, and there is none to compare it with", noun)};
  std::vector<std::string> sentences;
  for (const SlowLink& one : slow) sentences.push_back(slow_text(one, names));
  if (sentences.empty()) sentences.push_back(fmt::format("no {} or link is slower than the others", noun));
  return sentences;
}

}  // namespace

MeasuredPairs measure_pairs(const Job& job, const std::function<void(const std::string&)>& say) {
  const JobPlaces all = places_of(job);
  const std::vector<Place>& places = all.places;
  const std::vector<std::string> names = names_of(places);
  MeasuredPairs measured{.between = job.nodes() > 1 ? "hosts" : "ranks", .hosts = all.hosts};
  std::vector<SlowLink> slow;
  if (places.size() >= 2) {
    const std::vector<MeasuredPair> pairs = measure_pairs_of(job, places, {}, say);
    slow = find_slow(places.size(), pairs);
    for (const MeasuredPair& pair : pairs)
      measured.pairs.push_back({names[pair.first], names[pair.second], pair.link});
    const auto add_ring = [&](const std::vector<Place>& members) {
      std::vector<int> ranks;
      for (const Place& place : members) ranks.push_back(place.rank);
      measured.rings.push_back({names_of(members), probe_ring(job, ranks)});
    };
    add_ring(places);
    // Places that are slow as a whole leave the second ring.
    std::vector<Place> rest = places;
    for (const SlowLink& one : slow)
      if (!one.other)
        std::erase_if(rest, [&](const Place& place) { return place.rank == places[one.place].rank; });
    if (rest.size() >= 2 && rest.size() < places.size()) add_ring(rest);
    if (measured.are_hosts()) measured.within_host = slowest_within_hosts(job, all.within_hosts);
  }
  for (const SlowLink& one : slow)
    measured.slow.push_back({.what = one.what == SlowLink::What::bandwidth ? "bandwidth" : "latency",
                             .place = names[one.place],
                             .other = one.other ? std::optional(names[*one.other]) : std::nullopt,
                             .value = one.value,
                             .usual = one.usual});
  measured.findings = findings(measured.are_hosts() ? "host" : "rank", names, slow);
  return measured;
}

std::string to_text(const MeasuredPairs& measured) {
  std::vector<TextRow> rows{{"pair", "us one way", "GB/s"}};
  const auto row = [&](const std::string& name, const std::string& latency, double bytes_per_second) {
    rows.push_back({name, latency, fmt::format("{:.3f}", bytes_per_second / kGiga)});
  };
  const auto latency = [](const Link& link) {
    return fmt::format("{:.1f}", link.latency_seconds * kMicrosecondsInSecond);
  };
  for (const HostPair& pair : measured.pairs)
    row(pair.first + " - " + pair.second, latency(pair.link), pair.link.bytes_per_second);
  for (const MeasuredPairs::Ring& ring : measured.rings)
    row(fmt::format("ring {}", fmt::join(ring.places, " - ")), "", ring.bytes_per_second);
  if (measured.within_host)
    row("within a host", latency(*measured.within_host), measured.within_host->bytes_per_second);
  return fmt::format("links between {}, over MPI from host memory, both ways at once\n\n{}\n{}\n",
                     measured.are_hosts() ? "hosts" : "ranks of one host", padded_table(rows, "lr", "  "),
                     fmt::join(measured.findings, "\n"));
}

Links links_of(const MeasuredPairs& measured) {
  Links links{.comm = "mpi", .hosts = measured.hosts};
  std::optional<Link> ring;
  if (!measured.rings.empty()) {
    std::vector<double> latencies;
    for (const HostPair& pair : measured.pairs) latencies.push_back(pair.link.latency_seconds);
    ring = Link{.latency_seconds = median(latencies),
                .bytes_per_second = measured.rings.front().bytes_per_second};
  }
  if (!measured.are_hosts()) {
    links.within_host = ring;
    return links;
  }
  links.between_hosts = ring;
  links.within_host = measured.within_host;
  links.pairs = measured.pairs;
  return links;
}

}  // namespace plumb
