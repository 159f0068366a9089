// --pairs: every pair of hosts, rings over them, and who is slow.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/links/host_links.h"
#include "comm/job.h"
#include "results/record/links.h"

namespace plumb {

// Places are hosts, or the ranks of a single host, by their names.
struct MeasuredPairs {
  struct Ring {
    std::vector<std::string> places;  // in the ring's order
    double bytes_per_second = 0;      // of its slowest place
    static void fields(auto& self, auto&& each) {
      each("places", self.places), each("bytes_per_second", self.bytes_per_second);
    }
  };
  struct Slow {
    std::string what, place;
    std::optional<std::string> other;
    double value = 0, usual = 0;
    static void fields(auto& self, auto&& each) {
      each("what", self.what, Field{"bandwidth or latency"}), each("place", self.place);
      each("other", self.other,
           Field{.about = "the link's other end; null: all links of the place", .null_if_nothing = true});
      each("value", self.value), each("usual", self.usual);
    }
  };
  std::string between = "hosts";  // or "ranks"
  std::vector<LinkHost> hosts;    // of the job, in the order of their ranks
  std::vector<HostPair> pairs;
  std::vector<Ring> rings;          // of all places, then without those that are slow
  std::optional<Link> within_host;  // the slowest host's, of its first two ranks
  std::vector<Slow> slow;
  std::vector<std::string> findings;  // one sentence each, or that nothing is slow

  bool are_hosts() const { return between == "hosts"; }
  static void fields(auto& self, auto&& each) {
    each("between", self.between, Field{"hosts or ranks"}), each("pairs", self.pairs);
    each("rings", self.rings, Field{"of all places, then without the slow ones"});
    each("within_host", self.within_host, Field{.null_if_nothing = true});
    each("slow", self.slow), each("findings", self.findings);
  }
};

// Over MPI, from host memory, whatever carries collectives. Every rank calls it; collective. `say`: called on
// rank 0 before each round with a line for people.
MeasuredPairs measure_pairs(const Job& job, const std::function<void(const std::string&)>& say);

std::string to_text(const MeasuredPairs& measured);

// Pairs and rings for links.json.
Links links_of(const MeasuredPairs& measured);

}  // namespace plumb
