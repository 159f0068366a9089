#include "bench/allreduce/pairs.h"

#include <algorithm>

#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

void measure_ring(const Job& job, const std::vector<std::size_t>& members, MeasuredPairs& measured) {
  std::vector<int> ring;
  for (const std::size_t place : members) ring.push_back(measured.places[place].rank);
  measured.rings.push_back({members, probe_ring(job, ring)});
}

// Places that are slow as a whole leave the second ring.
std::vector<std::size_t> places_without_slow(const MeasuredPairs& measured) {
  std::vector<std::size_t> members;
  for (std::size_t place = 0; place < measured.places.size(); ++place)
    if (std::ranges::none_of(measured.slow,
                             [&](const SlowLink& slow) { return !slow.other && slow.place == place; }))
      members.push_back(place);
  return members;
}

std::optional<Link> slowest_within_hosts(const Job& job, const std::vector<RankPair>& pairs) {
  const std::vector<Link> links = probe_pairs(job, pairs);
  if (links.empty()) return std::nullopt;
  return *std::ranges::min_element(links, {}, &Link::bytes_per_second);
}

std::string ring_text(const MeasuredPairs& measured, const MeasuredRing& ring) {
  std::string names;
  for (const std::size_t place : ring.places) append_part(names, measured.places[place].name, " - ");
  return names;
}

double median_latency(const MeasuredPairs& measured) {
  std::vector<double> latencies;
  for (const MeasuredPair& pair : measured.pairs) latencies.push_back(pair.link.latency_seconds);
  return latencies.empty() ? 0 : median(latencies);
}

}  // namespace

MeasuredPairs measure_pairs(const Job& job, const std::function<void(const std::string&)>& say) {
  const JobPlaces all_places = places_of(job);
  MeasuredPairs measured{
      .are_hosts = job.nodes() > 1, .places = all_places.places, .hosts = all_places.hosts};
  if (measured.places.size() < 2) return measured;
  measured.pairs = measure_pairs_of(job, measured.places, {}, say);
  measured.slow = find_slow(measured.places.size(), measured.pairs);
  std::vector<std::size_t> all(measured.places.size());
  for (std::size_t place = 0; place < all.size(); ++place) all[place] = place;
  measure_ring(job, all, measured);
  const std::vector<std::size_t> rest = places_without_slow(measured);
  if (rest.size() >= 2 && rest.size() < all.size()) measure_ring(job, rest, measured);
  if (measured.are_hosts) measured.within_host = slowest_within_hosts(job, all_places.within_hosts);
  return measured;
}

std::vector<std::string> findings(const MeasuredPairs& measured) {
  const char* const noun = measured.are_hosts ? "host" : "rank";
  if (measured.places.size() < 2) return {fmt::format("one {} has no pairs: start at least two", noun)};
  if (measured.places.size() == 2)
    return {fmt::format("two {}s have one link, and there is none to compare it with", noun)};
  std::vector<std::string> sentences;
  const std::vector<std::string> names = names_of(measured.places);
  for (const SlowLink& slow : measured.slow) sentences.push_back(slow_text(slow, names));
  if (sentences.empty()) sentences.push_back(fmt::format("no {} or link is slow beside the others", noun));
  return sentences;
}

std::string to_text(const MeasuredPairs& measured) {
  std::string text = fmt::format("links between {}, over MPI from host memory, both ways at once\n\n",
                                 measured.are_hosts ? "hosts" : "ranks of one host");
  std::vector<TextRow> rows{{"pair", "us one way", "GB/s"}};
  const auto row = [&](const std::string& name, const std::string& latency, double bytes_per_second) {
    rows.push_back({name, latency, fmt::format("{:.3f}", bytes_per_second / kGiga)});
  };
  const auto latency = [](const Link& link) {
    return fmt::format("{:.1f}", link.latency_seconds * kMicrosecondsInSecond);
  };
  for (const MeasuredPair& pair : measured.pairs)
    row(measured.places[pair.first].name + " - " + measured.places[pair.second].name, latency(pair.link),
        pair.link.bytes_per_second);
  for (const MeasuredRing& ring : measured.rings)
    row("ring " + ring_text(measured, ring), "", ring.bytes_per_second);
  if (measured.within_host)
    row("within a host", latency(*measured.within_host), measured.within_host->bytes_per_second);
  text += padded_table(rows, "lr", "  ") + "\n";
  for (const std::string& sentence : findings(measured)) text += sentence + "\n";
  return text;
}

PairsReport report_of(const MeasuredPairs& measured) {
  const auto name = [&](std::size_t place) { return measured.places[place].name; };
  PairsReport report{.between = measured.are_hosts ? "hosts" : "ranks",
                     .within_host = measured.within_host,
                     .findings = findings(measured)};
  for (const MeasuredPair& pair : measured.pairs)
    report.pairs.push_back({name(pair.first), name(pair.second), pair.link});
  for (const MeasuredRing& ring : measured.rings) {
    report.rings.push_back({.bytes_per_second = ring.bytes_per_second});
    for (const std::size_t place : ring.places) report.rings.back().places.push_back(name(place));
  }
  for (const SlowLink& one : measured.slow)
    report.slow.push_back({.what = one.what == SlowLink::What::bandwidth ? "bandwidth" : "latency",
                           .place = name(one.place),
                           .other = one.other ? std::optional(name(*one.other)) : std::nullopt,
                           .value = one.value,
                           .usual = one.usual});
  return report;
}

Links links_of(const MeasuredPairs& measured) {
  Links links{.comm = "mpi", .hosts = measured.hosts};
  std::optional<Link> ring;
  if (!measured.rings.empty())
    ring = Link{.latency_seconds = median_latency(measured),
                .bytes_per_second = measured.rings.front().bytes_per_second};
  if (!measured.are_hosts) {
    links.within_host = ring;
    return links;
  }
  links.between_hosts = ring;
  links.within_host = measured.within_host;
  for (const MeasuredPair& pair : measured.pairs)
    links.pairs.push_back({measured.places[pair.first].name, measured.places[pair.second].name, pair.link});
  return links;
}

}  // namespace plumb
