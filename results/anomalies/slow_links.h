// Which host or link is slow, from the speeds of all pairs.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/record/links.h"

namespace plumb {

// A pair of places, by index, and its link.
struct MeasuredPair {
  std::size_t first = 0, second = 0;
  Link link;
};

struct SlowLink {
  enum class What { bandwidth, latency };
  What what = What::bandwidth;
  std::size_t place = 0;             // the slow place, or one end of the slow link
  std::optional<std::size_t> other;  // the other end; nothing: all links of `place` are slow
  double value = 0, usual = 0;       // bytes per second or seconds; of a place its best link
};

// From where on a link is slow beside the usual one.
struct SlowLimits {
  double bandwidth_share = 0.75;  // its bandwidth is under this share of the usual one
  double latency_factor = 3;      // or its latency over so many times the usual one
  double latency_seconds = 0;     // and above this
  // What links should reach, instead of what is usual here.
  std::optional<double> expected_bytes_per_second = {};
};

// Limits of the probe before a run: a busy host or a busy network must not look like a slow one, and a rank
// that waits for its CPU answers some milliseconds late.
inline constexpr SlowLimits kSlowInRuns{
    .bandwidth_share = 0.4, .latency_factor = 10, .latency_seconds = 0.02};

// Usual: the third quartile, from slow to fast, of the places' best links. A place is
// slow if all its links are; its links are then not named one by one. Two places have one link, which only an
// expectation can be compared with.
std::vector<SlowLink> find_slow(std::size_t places, std::span<const MeasuredPair> pairs,
                                const SlowLimits& limits = {});

// The same of the pairs of `links`; places are its hosts.
std::vector<SlowLink> find_slow(const Links& links, const SlowLimits& limits = {});

// "host n3 reaches 96 Mbit/s where others reach 940 Mbit/s".
std::string slow_text(const SlowLink& slow, std::span<const std::string> names);

// For a run, one sentence: "host n3 reaches 96 Mbit/s where others reach 940 Mbit/s, and every step waits for
// it; …"; at most three hosts or links are named. Empty if none is slow.
std::string slow_warning(std::span<const SlowLink> slow, std::span<const std::string> names);

// The same of the links that a run probed; empty if none is slow.
std::string slow_warning(const Links& links);

// "940 Mbit/s", "24 Gbit/s".
std::string bits_text(double bytes_per_second);

}  // namespace plumb
