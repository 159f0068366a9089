// --pairs: every pair of hosts, rings over them, and who is slow.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/links/host_links.h"
#include "comm/job.h"
#include "results/record/links.h"

namespace plumb {

struct MeasuredPairs {
  struct Ring {
    std::vector<std::string> places;  // in the ring's order
    double bytes_per_second = 0;      // of its slowest place
    static void fields(auto& self, auto&& each) {
      each("places", self.places), each("bytes_per_second", self.bytes_per_second);
    }
  };
  Links links;                        // as in links.json
  std::vector<Ring> rings;            // of all hosts, then without those that are slow
  std::vector<std::string> findings;  // one sentence each, or that nothing is slow

  static void fields(auto& self, auto&& each) {
    Links::fields(self.links, each);
    each("rings", self.rings, Field{"of all hosts, then without the slow ones"});
    each("findings", self.findings);
  }
};

// Over MPI, from host memory, whatever carries collectives. Every rank calls it; collective. `say`: called on
// rank 0 before each round with a line for people.
MeasuredPairs measure_pairs(const Job& job, const std::function<void(const std::string&)>& say);

std::string to_text(const MeasuredPairs& measured);

}  // namespace plumb
