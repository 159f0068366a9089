// What a report shows of a run's profile.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "results/record/fields.h"

namespace plumb {

// profile.json: where the time of an iteration goes, beside the least it could take.
struct ProfiledInstruction {
  std::string name, kind, phase, lane;
  double seconds = 0, roofline_seconds = 0;
  double flops_per_second = 0, bytes_per_second = 0;  // achieved
  std::string bound_by;                               // "compute", "bandwidth", "latency", "-"
  std::string engine;                                 // of a convolution or product; empty: not named
  static void fields(auto& self, auto&& each) {
    each("name", self.name), each("kind", self.kind), each("phase", self.phase), each("lane", self.lane);
    each("seconds", self.seconds, Field{.finite = true});
    each("roofline_seconds", self.roofline_seconds, Field{.finite = true});
    each("flops_per_second", self.flops_per_second), each("bytes_per_second", self.bytes_per_second);
    each("bound_by", self.bound_by), each("engine", self.engine, Field{.written = !self.engine.empty()});
  }
};

struct ProfiledKind {
  std::string name;
  int instructions = 0;
  double seconds = 0, roofline_seconds = 0;
  static void fields(auto& self, auto&& each) {
    each("name", self.name), each("ops", self.instructions, Field{"", 0});
    each("seconds", self.seconds, Field{.finite = true});
    each("roofline_seconds", self.roofline_seconds, Field{.finite = true});
  }
};

struct RunProfile {
  std::string device;
  double peak_flops_per_second = 0, peak_bytes_per_second = 0;
  double iteration_seconds = 0, busy_seconds = 0, gap_seconds = 0, roofline_seconds = 0;
  std::vector<ProfiledKind> kinds;                // compute lane, the longest first
  std::vector<ProfiledInstruction> instructions;  // the longest first
  static void fields(auto& self, auto&& each) {
    each("device", self.device), each("peak_flops_per_second", self.peak_flops_per_second);
    each("peak_bytes_per_second", self.peak_bytes_per_second);
    each("iteration_seconds", self.iteration_seconds), each("busy_seconds", self.busy_seconds);
    each("gap_seconds", self.gap_seconds);
    each("roofline_seconds", self.roofline_seconds, Field{.finite = true});
    each("kinds", self.kinds), each("ops", self.instructions);
  }
};

// Throws Error(bad_data) that names `origin` and the key.
RunProfile run_profile(const Json& profile, const std::string& origin, std::size_t most_instructions = 500);

}  // namespace plumb
