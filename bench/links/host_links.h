// Latency and bandwidth of every pair of hosts, measured over MPI: for bench_allreduce --pairs and for the
// probe before a run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/console/messages.h"
#include "comm/job.h"
#include "results/record/links.h"

namespace plumb {

// The links between all pairs of hosts, rings across the hosts, and which hosts or links are slow.
struct MeasuredPairs {
  struct Ring {
    std::vector<std::string> places;  // hosts, in the ring's order
    double bytes_per_second = 0;      // of its slowest link
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

// The job's hosts, in the order of their first ranks. Every rank calls it.
std::vector<LinkHost> hosts_of(const Job& job);

// Measures pairs of hosts in rounds, side by side. Pairs that seem slow are measured again, alone, up to
// three times, as long as one gains more than a tenth. Uses MPI from host memory, whatever carries
// collectives. Every rank calls it. `say`: called on rank 0 before each round with a line for people.
MeasuredPairs measure_pairs(const Job& job, const std::function<void(const std::string&)>& say);

// Before a run: measures every pair of hosts, with over 33 hosts 32 pairs of each, in about a second, and
// warns of slow ones. Returns the links on rank 0, unless hosts share a name. Every rank calls it.
std::optional<Links> probe_host_links(const Job& job, Messages& messages);

}  // namespace plumb
