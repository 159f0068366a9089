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

std::vector<std::string> findings(const std::vector<std::string>& names, const std::vector<SlowLink>& slow) {
  if (names.size() == 2) return {"two hosts have one link, and there is none to compare it with"};
  if (slow.empty()) return {"no host or link is slower than the others"};
  return mapped(slow, [&](const SlowLink& one) { return slow_text(one, names); });
}

MeasuredPairs::Ring ring_of(const Job& job, const std::vector<Place>& places) {
  return {names_of(places), probe_ring(job, mapped(places, &Place::rank))};
}

}  // namespace

MeasuredPairs measure_pairs(const Job& job, const std::function<void(const std::string&)>& say) {
  const JobPlaces all = places_of(job);
  const std::vector<std::string> names = names_of(all.places);
  const std::vector<MeasuredPair> pairs = measure_pairs_of(job, all.places, {}, say);
  const std::vector<SlowLink> slow = find_slow(names.size(), pairs);
  MeasuredPairs measured{.links = {.comm = "mpi", .hosts = all.hosts},
                         .rings = {ring_of(job, all.places)},
                         .findings = findings(names, slow)};
  // Hosts that are slow as a whole leave the second ring.
  std::vector<Place> rest = all.places;
  for (const SlowLink& one : slow)
    if (!one.other) std::erase_if(rest, [&](const Place& place) { return place.name == names[one.place]; });
  if (rest.size() >= 2 && rest.size() < names.size()) measured.rings.push_back(ring_of(job, rest));
  for (const MeasuredPair& pair : pairs)
    measured.links.pairs.push_back({names[pair.first], names[pair.second], pair.link});
  measured.links.between_hosts = Link{
      .latency_seconds = median(mapped(pairs, [](const auto& pair) { return pair.link.latency_seconds; })),
      .bytes_per_second = measured.rings.front().bytes_per_second};
  measured.links.within_host = slowest_within_hosts(job, all.within_hosts);
  return measured;
}

std::string to_text(const MeasuredPairs& measured) {
  std::vector<TextRow> rows{{"pair", "us one way", "GB/s"}};
  const auto gigabytes = [](double bytes_per_second) {
    return fmt::format("{:.3f}", bytes_per_second / kGiga);
  };
  const auto row = [&](const std::string& name, const Link& link) {
    rows.push_back({name, fmt::format("{:.1f}", link.latency_seconds * kMicrosecondsInSecond),
                    gigabytes(link.bytes_per_second)});
  };
  for (const HostPair& pair : measured.links.pairs) row(pair.first + " - " + pair.second, pair.link);
  for (const MeasuredPairs::Ring& ring : measured.rings)
    rows.push_back(
        {fmt::format("ring {}", fmt::join(ring.places, " - ")), "", gigabytes(ring.bytes_per_second)});
  if (measured.links.within_host) row("within a host", *measured.links.within_host);
  return fmt::format("links between hosts, over MPI from host memory, both ways at once\n\n{}\n{}\n",
                     padded_table(rows, "lr", "  "), fmt::join(measured.findings, "\n"));
}

}  // namespace plumb
