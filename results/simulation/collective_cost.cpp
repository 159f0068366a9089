#include "results/simulation/collective_cost.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/paths.h"
#include "results/record/schema.h"

namespace plumb {
namespace {

// NCCL 2.7.3, src/graph/tuning.cc: seconds per hop of a ring and of a tree over NVLink and over the
// network, and the share of the bandwidth that a tree reaches.
constexpr double kNcclRingWithin = 3.4e-6, kNcclRingBetween = 9.6e-6;
constexpr double kNcclTreeWithin = 4.0e-6, kNcclTreeBetween = 14e-6;
constexpr double kNcclTreeBandwidth = 0.92;

// The ring across the first `nodes` hosts, or all hosts if there are fewer, from measured pairs.
struct PairedRing {
  double hop_seconds = 0, bytes_per_second = 0;
  std::string slowest;
};

// Nothing unless every neighboring pair was measured.
std::optional<PairedRing> paired_ring(const Links& links, int nodes) {
  const std::size_t count = std::min(static_cast<std::size_t>(nodes), links.hosts.size());
  if (count < 2) return {};
  PairedRing ring;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string &from = links.hosts[i].name, &to = links.hosts[(i + 1) % count].name;
    const auto pair = std::ranges::find_if(links.pairs, [&](const HostPair& one) {
      return (one.first == from && one.second == to) || (one.first == to && one.second == from);
    });
    if (pair == links.pairs.end()) return {};
    ring.hop_seconds += pair->link.latency_seconds / static_cast<double>(count);
    if (!ring.slowest.empty() && pair->link.bytes_per_second >= ring.bytes_per_second) continue;
    ring.bytes_per_second = pair->link.bytes_per_second;
    ring.slowest = printable(from) + " and " + printable(to);
  }
  return ring;
}

// The measured layout that tells most about `layout`: itself, else the largest of those that leave a host, or
// don't, as it does.
std::optional<Layout> nearest_measured(const Links& links, Layout layout) {
  std::optional<Layout> nearest;
  for (const MeasuredAllreduce& measured : links.allreduces) {
    const Layout one = measured.layout();
    if (one == layout) return one;
    if ((one.nodes == 1) == (layout.nodes == 1) && (!nearest || one.devices() > nearest->devices()))
      nearest = one;
  }
  return nearest;
}

// A link whose hops and bandwidth explain the allreduces of the nearest layout.
std::optional<Link> link_by_allreduces(const Links& links, Layout layout) {
  const std::optional<Layout> nearest = nearest_measured(links, layout);
  if (!nearest) return {};
  std::optional<Link> fitted = fitted_link(links.allreduces, *nearest);
  if (!fitted) return {};
  const int hops = 2 * (nearest->nodes > 1 ? nearest->nodes - 1 : nearest->devices_per_node - 1);
  fitted->latency_seconds = std::max(0.0, fitted->latency_seconds - links.start_seconds) / hops;
  return fitted;
}

// The links that a layout's ring crosses, as far as they are known.
struct CrossedLinks {
  std::optional<Link> within, between;
  std::string slowest_pair;
};

CrossedLinks crossed_links(const Links& links, Layout layout) {
  CrossedLinks crossed;
  if (layout.devices_per_node > 1) {
    crossed.within = links.within_host;
    if (!crossed.within) crossed.within = link_by_allreduces(links, {1, layout.devices_per_node});
  }
  if (layout.nodes == 1) return crossed;
  const std::optional<PairedRing> ring = paired_ring(links, layout.nodes);
  const bool is_part = static_cast<std::size_t>(layout.nodes) < links.hosts.size();
  if (ring) crossed.slowest_pair = ring->slowest;
  crossed.between = links.between_hosts;
  if (ring && (is_part || !crossed.between))
    crossed.between = Link{ring->hop_seconds, ring->bytes_per_second};
  if (!crossed.between) crossed.between = link_by_allreduces(links, layout);
  return crossed;
}

std::string missing_from(const CrossedLinks& crossed, Layout layout) {
  if (layout.nodes > 1) return crossed.between ? "" : "link between hosts";
  return layout.devices_per_node > 1 && !crossed.within ? "link within a host" : "";
}

}  // namespace

std::string missing_link(const Links& links, Layout layout) {
  return missing_from(crossed_links(links, layout), layout);
}

CollectiveCost::CollectiveCost(const Links& links, Layout layout)
    : layout_(layout), has_trees_(links.comm == "nccl"), start_seconds_(links.start_seconds) {
  const CrossedLinks crossed = crossed_links(links, layout);
  if (const std::string missing = missing_from(crossed, layout); !missing.empty())
    throw Error(ExitCode::bad_data,
                "links.json has no {}, which {} needs; measure with bench_allreduce --output", missing,
                layout.name());
  slowest_pair_ = crossed.slowest_pair;
  bytes_per_second_ = HUGE_VAL;
  if (crossed.within) {
    within_seconds_ = crossed.within->latency_seconds;
    bytes_per_second_ = crossed.within->bytes_per_second;
  }
  if (crossed.between) {
    between_seconds_ = crossed.between->latency_seconds;
    bytes_per_second_ = std::min(bytes_per_second_, crossed.between->bytes_per_second);
  }
  if (layout.devices() > 1) correct_by(links);
}

double CollectiveCost::modeled(std::string_view kind, double bytes) const {
  const double n = layout_.devices(), hosts = layout_.nodes;
  const double rounds = kind.starts_with("allreduce") ? 2 : 1;
  const double ring = start_seconds_ +
                      rounds * ((n - hosts) * within_seconds_ + (hosts - 1) * between_seconds_) +
                      bytes * bus_factor(kind, layout_.devices()) / bytes_per_second_;
  if (!has_trees_ || layout_.nodes == 1 || rounds < 2) return ring;
  const double tree =
      start_seconds_ +
      2 * ((layout_.devices_per_node - 1) * within_seconds_ * (kNcclTreeWithin / kNcclRingWithin) +
           std::floor(std::log2(hosts)) * between_seconds_ * (kNcclTreeBetween / kNcclRingBetween)) +
      bytes * 2 / (kNcclTreeBandwidth * bytes_per_second_);
  return std::min(ring, tree);
}

// Between measured sizes factors go by the logarithm of the size, beyond them they stay.
CollectiveCost::Measured CollectiveCost::measured(double bytes) const {
  if (measured_.empty()) return {};
  const auto above = measured_.lower_bound(bytes);
  if (above == measured_.begin()) return above->second;
  const auto below = std::prev(above);
  if (above == measured_.end()) return below->second;
  const double share = std::log(bytes / below->first) / std::log(above->first / below->first);
  const auto between = [&](double a, double b) { return a + share * (b - a); };
  const Measured &a = below->second, &b = above->second;
  return {between(a.factor, b.factor),
          {between(a.spread.fastest, b.spread.fastest), between(a.spread.slowest, b.spread.slowest)}};
}

void CollectiveCost::correct_by(const Links& links) {
  const std::optional<Layout> nearest = nearest_measured(links, layout_);
  if (!nearest) return;
  CollectiveCost there = *this;
  there.layout_ = *nearest;
  for (const MeasuredAllreduce& one : links.allreduces) {
    if (one.layout() != *nearest) continue;
    const double bytes = static_cast<double>(one.bytes), median = one.seconds.median;
    measured_[bytes] = {median / there.modeled("allreduce_sum", bytes),
                        {one.seconds.min / median, one.seconds.max / median}};
  }
}

double CollectiveCost::seconds(std::string_view kind, double bytes) const {
  if (layout_.devices() == 1) return 0;
  return modeled(kind, bytes) * measured(bytes).factor;
}

double CollectiveCost::least_seconds(std::string_view kind, double bytes) const {
  if (layout_.devices() == 1) return 0;
  const double by_link = bytes * bus_factor(kind, layout_.devices()) / bytes_per_second_;
  return std::min(by_link, seconds(kind, bytes) * spread(bytes).fastest);
}

CollectiveCost::Spread CollectiveCost::spread(double bytes) const {
  return layout_.devices() == 1 ? Spread() : measured(bytes).spread;
}

std::optional<Link> fitted_link(const std::vector<MeasuredAllreduce>& measured, Layout layout) {
  const MeasuredAllreduce *smallest = nullptr, *largest = nullptr;
  for (const MeasuredAllreduce& one : measured) {
    if (one.layout() != layout) continue;
    if (!smallest || one.bytes < smallest->bytes) smallest = &one;
    if (!largest || one.bytes > largest->bytes) largest = &one;
  }
  if (!smallest || largest->bytes == smallest->bytes) return {};
  const double factor = bus_factor("allreduce", layout.devices());
  const double more_bytes = static_cast<double>(largest->bytes - smallest->bytes) * factor;
  const double more_seconds = largest->seconds.median - smallest->seconds.median;
  if (!(more_seconds > 0)) return {};
  const double per_byte = more_seconds / more_bytes;
  const double latency = smallest->seconds.median - static_cast<double>(smallest->bytes) * factor * per_byte;
  return Link{std::max(0.0, latency), 1 / per_byte};
}

}  // namespace plumb
