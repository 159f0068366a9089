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

// A link is slow if its bandwidth is under kSlowShare of the usual one, or its latency over kSlowLatency
// times the usual one. Usual: the third quartile, from slow to fast, of the places' best links. A place is
// slow if all its links are and other places have good ones; its links are then not named one by one. Two
// places have one link, which nothing can be compared with.
inline constexpr double kSlowShare = 0.75, kSlowLatency = 3;
std::vector<SlowLink> find_slow(std::size_t places, std::span<const MeasuredPair> pairs);

// "node3 is slow: its best link reaches 0.012 GB/s, the others' 0.117 GB/s".
std::string slow_text(const SlowLink& slow, std::span<const std::string> names);

}  // namespace plumb
