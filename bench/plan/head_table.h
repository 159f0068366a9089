// The cost of class centers for each --head: a rank's memory and traffic, and the most classes that fit a
// GPU.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/options/options.h"
#include "kernels/program/describe.h"
#include "kernels/program/targets.h"
#include "models/graph.h"
#include "results/record/fields.h"

namespace plumb {

struct HeadPlan {
  std::string head;          // "dp", "mp", "pfc"
  double planned_bytes = 0;  // of rank 0, which has the most classes
  double traffic_bytes = 0;  // sent per step and rank
  std::int64_t rows = 0;     // class centers that a step of rank 0 works with
  std::map<std::string, std::optional<std::int64_t>> largest_classes;

  static void fields(auto& self, auto&& each) {
    each("head", self.head, Field{"dp, mp or pfc"});
    each("planned_bytes", static_cast<std::int64_t>(self.planned_bytes), Field{"of rank 0"});
    each("traffic_bytes", static_cast<std::int64_t>(self.traffic_bytes), Field{"sent per step and rank"});
    each("rows", self.rows, Field{"class centers that a step of rank 0 works with"});
    each("largest_classes", self.largest_classes,
         Field{"by target: the most classes over all ranks that fit; null where it lacks the precision"});
  }
};

// Leaves out heads that would give a rank no class. `options`: resolved, of a model with a margin head.
std::vector<HeadPlan> plan_heads(const BenchOptions& options, const DeviceLimits& limits, int world_size);

// The most classes over all ranks whose plan for rank 0 fits limits.memory_bytes, 0 if one class per rank is
// too much; empty if the device lacks the precision. `options`: resolved. `plain`: of Preparation.
std::optional<std::int64_t> largest_classes(const BenchOptions& options, const DeviceLimits& limits,
                                            int world_size, const std::vector<PlainLayer>& plain = {});

// This rank's class centers: "501 of 1001 class centers, 50 in a step".
std::string shard_text(const Graph& graph);

std::string to_text(const std::vector<HeadPlan>& heads);

}  // namespace plumb
