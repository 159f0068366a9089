// Time of a collective over given links: latency and bandwidth of rings and trees, corrected by what was
// measured for each message size.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/record/links.h"

namespace plumb {

// Seconds of an allreduce of S bytes over n = N * g ranks, a ring: start + hops + S / B * 2 (n - 1) / n. Its
// 2 (n - 1) hops are as slow as the links that they cross, 2 (N - 1) of them between hosts. allgather and
// reduce-scatter: half of hops and bytes. NCCL takes a tree where that is faster: start + 2 [(g - 1) hops
// within a host + floor(log2 N) between hosts] + S * 2 / (0.92 B). (NCCL 2.7.3, src/graph/tuning.cc.)
class CollectiveCost {
 public:
  // Cases larger than the measured ones take the slowest link that is known. Throws Error(bad_data) if
  // missing_link() is one.
  CollectiveCost(const Links& links, Layout layout);

  // `kind` as name_of(Collective::Kind) spells it. 0 for a device alone.
  double seconds(std::string_view kind, double bytes) const;
  // Lower bound: the bytes at full bandwidth, without latency or start.
  double least_seconds(std::string_view kind, double bytes) const;

  struct Spread {
    double fastest = 1, slowest = 1;  // factors of seconds(), over the iterations that were measured
  };
  Spread spread(double bytes) const;

  double bytes_per_second() const { return bytes_per_second_; }  // of the ring: its slowest link
  double hop_seconds() const { return layout_.nodes > 1 ? between_seconds_ : within_seconds_; }
  const std::string& slowest_pair() const { return slowest_pair_; }  // "node1 and node3"; empty: not known

 private:
  struct Measured {
    double factor = 1;  // measured / modeled
    Spread spread;
  };
  double modeled(std::string_view kind, double bytes) const;
  Measured measured(double bytes) const;
  void correct_by(const Links& links);

  Layout layout_;
  bool has_trees_ = false;
  double start_seconds_ = 0, within_seconds_ = 0, between_seconds_ = 0;  // a hop
  double bytes_per_second_ = 0;
  std::string slowest_pair_;
  std::map<double, Measured> measured_;  // by bytes of an allreduce
};

// Names the link that `layout` needs and `links` lack: "link within a host", "link between hosts"; empty if
// none.
std::string missing_link(const Links& links, Layout layout);

// The latency of an allreduce over the layout, and its bus bandwidth, with which the smallest and the largest
// measured size come out. Nothing for fewer than two sizes, or if the largest takes no longer.
std::optional<Link> fitted_link(const std::vector<MeasuredAllreduce>& measured, Layout layout);

}  // namespace plumb
