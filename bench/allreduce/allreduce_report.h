// The output of bench_allreduce, a table or plumbline.allreduce/2, with warnings about anything that may have
// spoiled the measurement, such as other programs on the hosts or links that changed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/allreduce/allreduce_options.h"
#include "bench/allreduce/measurements.h"
#include "bench/links/host_links.h"
#include "results/record/links.h"

namespace plumb {

class Job;

inline constexpr const char* kAllreduceSchema = "plumbline.allreduce/2";

// A ring of all ranks, each sending to the next, before and after the collectives: bytes per second of its
// slowest link.
struct ProbedRing {
  double before = 0, after = 0;
  static void fields(auto& self, auto&& each) {
    each("before", self.before, Field{"bytes per second of the slowest link, before the collectives"});
    each("after", self.after, Field{"the same after them"});
  }
};

struct AllreduceReport {
  AllreduceOptions options;  // resolved
  int world_size = 1, nodes = 1, devices_per_node = 1;
  int ranks_per_gpu = 1;  // on the fullest GPU
  std::string device_name;
  std::vector<MeasuredTransfer> results;
  std::optional<MeasuredPairs> pairs;
  std::optional<ProbedRing> ring;     // over several hosts and MPI
  std::optional<Links> probed;        // likewise: the pairs of hosts
  std::vector<std::string> warnings;  // one sentence each
  static void fields(auto& self, auto&& each) {
    AllreduceOptions options = self.options;
    const bool shares = self.ranks_per_gpu > 1;
    each("world_size", self.world_size), each("nodes", self.nodes);
    each("devices_per_node", self.devices_per_node);
    each("ranks_per_gpu", self.ranks_per_gpu, Field{.about = "with --share-gpu", .written = shares});
    each("warnings", self.warnings, Field{.written = !self.warnings.empty()});
    each("device_name", self.device_name), each("comm", options.comm);
    each("config", config_json(allreduce_option_table(options)), Field{"every option, resolved"});
    each("results", self.results);
    each("ring", self.ring, Field{"over several hosts and MPI"});
    each("links", self.pairs, Field{"of --pairs"});
  }
};

// A sentence that names the hosts on which other programs use half of the CPUs or more; empty without any.
// Every rank calls it; the result is rank 0's.
std::string load_warning(const Job& job);

// The highest bus bandwidth of the results of at least 1 MiB, in bytes per second: latency dominates others.
std::optional<double> highest_busbw(std::span<const MeasuredTransfer> results);

// Sentences about links that changed, and about collectives far slower than the ring. `busbw`:
// highest_busbw().
std::vector<std::string> ring_warnings(const ProbedRing& ring, std::optional<double> busbw);

// Seconds of all collectives of `sizes`, in and out of place, by bus_factor() with one latency per hop.
double estimated_seconds(const AllreduceOptions& options, std::span<const std::uint64_t> sizes,
                         int world_size, const Link& link);

// At most 100 columns.
std::string to_text(const AllreduceReport& report);

// For links.json, with the in-place allreduces of a sweep, or the pairs. `hosts`: as hosts_of().
Links links_of(const AllreduceReport& report, const std::vector<LinkHost>& hosts);

}  // namespace plumb
