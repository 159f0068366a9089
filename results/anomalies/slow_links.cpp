#include "results/anomalies/slow_links.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"

namespace plumb {
namespace {

// Links as speeds, so that larger is better.
double speed_of(const Link& link, SlowLink::What what) {
  if (what == SlowLink::What::bandwidth) return link.bytes_per_second;
  return link.latency_seconds > 0 ? 1 / link.latency_seconds : 0;
}

double as_measured(double speed, SlowLink::What what) {
  if (what == SlowLink::What::bandwidth) return speed;
  return speed > 0 ? 1 / speed : 0;
}

double third_quartile(std::vector<double> values) {
  std::ranges::sort(values);
  return values[(3 * values.size()) / 4];
}

std::vector<SlowLink> find_slow(std::size_t places, std::span<const MeasuredPair> pairs, SlowLink::What what,
                                const SlowLimits& limits) {
  std::vector<double> best(places, 0);
  for (const MeasuredPair& pair : pairs)
    for (const std::size_t place : {pair.first, pair.second})
      best[place] = std::max(best[place], speed_of(pair.link, what));
  const double usual = what == SlowLink::What::bandwidth
                           ? limits.expected_bytes_per_second.value_or(third_quartile(best))
                           : third_quartile(best);
  const double least_share =
      what == SlowLink::What::bandwidth ? limits.bandwidth_share : 1 / limits.latency_factor;
  const auto is_slow = [&](double speed) {
    return speed < least_share * usual &&
           (what == SlowLink::What::bandwidth || as_measured(speed, what) > limits.latency_seconds);
  };
  std::vector<SlowLink> found;
  for (std::size_t place = 0; place < places; ++place)
    if (is_slow(best[place]))
      found.push_back({what, place, std::nullopt, as_measured(best[place], what), as_measured(usual, what)});
  for (const MeasuredPair& pair : pairs) {
    const double speed = speed_of(pair.link, what);
    if (is_slow(speed) && !is_slow(best[pair.first]) && !is_slow(best[pair.second]))
      found.push_back({what, pair.first, pair.second, as_measured(speed, what), as_measured(usual, what)});
  }
  return found;
}

}  // namespace

std::vector<SlowLink> find_slow(std::size_t places, std::span<const MeasuredPair> pairs,
                                const SlowLimits& limits) {
  std::vector<SlowLink> found;
  if (places > 2 || limits.expected_bytes_per_second)
    found = find_slow(places, pairs, SlowLink::What::bandwidth, limits);
  if (places < 3) return found;
  const std::vector<SlowLink> late = find_slow(places, pairs, SlowLink::What::latency, limits);
  found.insert(found.end(), late.begin(), late.end());
  return found;
}

std::string slow_text(const SlowLink& slow, std::span<const std::string> names) {
  const std::string who = slow.other ? fmt::format("the link {} - {}", names[slow.place], names[*slow.other])
                                     : fmt::format("host {}", names[slow.place]);
  if (slow.what == SlowLink::What::bandwidth)
    return fmt::format("{} reaches {} where others reach {}", who, bits_text(slow.value),
                       bits_text(slow.usual));
  return fmt::format("{} takes {:.3g} us for a small message where others take {:.3g} us", who,
                     slow.value * kMicrosecondsInSecond, slow.usual * kMicrosecondsInSecond);
}

std::string slow_warning(std::span<const SlowLink> slow, std::span<const std::string> names) {
  constexpr std::size_t kMostNamed = 3;
  if (slow.empty()) return "";
  std::string text;
  for (const SlowLink& one : slow.first(std::min(slow.size(), kMostNamed)))
    append_part(text, slow_text(one, names), "; ");
  if (slow.size() > kMostNamed) text += fmt::format("; and {} more", slow.size() - kMostNamed);
  return text + ": every step waits for it; check its cable, port and network card, or leave the host out";
}

std::vector<SlowLink> find_slow(const Links& links, const SlowLimits& limits) {
  const auto place_of = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(links.hosts, name, &LinkHost::name) -
                                    links.hosts.begin());
  };
  const auto pairs = mapped(links.pairs, [&](const HostPair& pair) {
    return MeasuredPair{place_of(pair.first), place_of(pair.second), pair.link};
  });
  return find_slow(links.hosts.size(), pairs, limits);
}

std::string slow_warning(const Links& links) {
  return slow_warning(find_slow(links, kSlowInRuns), mapped(links.hosts, &LinkHost::name));
}

std::string bits_text(double bytes_per_second) {
  constexpr double kBits = 8, kMega = 1e6, kMostMega = 1e4;
  const double mega = kBits * bytes_per_second / kMega;
  return mega < kMostMega ? fmt::format("{:.0f} Mbit/s", mega) : fmt::format("{:.0f} Gbit/s", mega / 1e3);
}

}  // namespace plumb
