// What bench_allreduce prints: a table, or plumbline.allreduce/2.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/allreduce/allreduce_options.h"
#include "bench/allreduce/conditions.h"
#include "bench/allreduce/measured_transfer.h"
#include "bench/allreduce/pairs.h"
#include "bench/allreduce/replay.h"
#include "results/record/links.h"

namespace plumb {

inline constexpr const char* kAllreduceSchema = "plumbline.allreduce/2";

struct AllreduceReport {
  AllreduceOptions options;  // resolved
  int world_size = 1, nodes = 1, devices_per_node = 1;
  int ranks_per_gpu = 1;  // on the fullest GPU
  std::string device_name;
  bool captured = false;  // collectives were replayed as a CUDA graph
  std::vector<MeasuredTransfer> results;
  std::optional<MeasuredReplay> replay;
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
    each("cuda_graph", self.captured, Field{"whether collectives were replayed as a CUDA graph"});
    each("config", config_json(allreduce_option_table(options)), Field{"every option, resolved"});
    each("results", self.results), each("replay", self.replay, Field{"of --replay"});
    each("ring", self.ring, Field{"over several hosts and MPI"});
    each("links", self.pairs, Field{"of --pairs"});
  }
};

// At most 100 columns.
std::string to_text(const AllreduceReport& report);

// For links.json, with the in-place allreduces of a sweep, or the pairs. `hosts`: JobPlaces::hosts.
Links links_of(const AllreduceReport& report, const std::vector<LinkHost>& hosts);

}  // namespace plumb
