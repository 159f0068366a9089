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
  static void fields(auto& self, auto&& each);
};

// At most 100 columns.
std::string to_text(const AllreduceReport& report);
nlohmann::ordered_json to_json(const AllreduceReport& report);
nlohmann::ordered_json allreduce_schema();

// For links.json, with the in-place allreduces of a sweep, or the pairs. `hosts`: JobPlaces::hosts.
Links links_of(const AllreduceReport& report, const std::vector<LinkHost>& hosts);

}  // namespace plumb
