// profile.json as data: where the time of an iteration goes, beside the least it could take.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace plumb {

struct ProfiledInstruction {
  std::string name, kind, phase, lane;
  double seconds = 0, roofline_seconds = 0;
  double flops_per_second = 0, bytes_per_second = 0;  // achieved
  std::string bound_by;                               // "compute", "bandwidth", "latency", "-"
  std::string engine;                                 // of a convolution or product; empty: not named
};

struct ProfiledKind {
  std::string name;
  int instructions = 0;
  double seconds = 0, roofline_seconds = 0;
};

struct RunProfile {
  std::string device;
  double peak_flops_per_second = 0, peak_bytes_per_second = 0;
  double iteration_seconds = 0, busy_seconds = 0, gap_seconds = 0, roofline_seconds = 0;
  std::vector<ProfiledKind> kinds;                // compute lane, the longest first
  std::vector<ProfiledInstruction> instructions;  // the longest first
  int left_out = 0;                               // shorter instructions beyond `most_instructions`
};

// Throws Error(bad_data) that names `origin` and the key.
RunProfile run_profile(const nlohmann::ordered_json& profile, const std::string& origin,
                       std::size_t most_instructions = 500);

}  // namespace plumb
