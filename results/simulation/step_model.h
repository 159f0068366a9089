// One device's training step as the simulator takes it: compute instructions with their times, and the
// collectives between them. Made from program.json and profile.json.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "models/buckets.h"

namespace plumb {

struct StepCompute {
  std::string name;
  double seconds = 0;
};

// A collective may start once compute[0 … after) have ended, and compute[before] waits for it; `before` is
// compute.size() where only the end of the step waits.
struct StepCollective {
  std::string name, kind;  // "bucket0.allreduce", "allreduce_sum"
  double bytes = 0;        // of the whole buffer, as it is sent
  std::size_t after = 0, before = 0;
  bool sums_gradients = true;  // false: a head's own
};

// A gradient that is summed over all ranks; `after` and `before` as above.
struct StepGradient {
  std::size_t bytes = 0;
  std::size_t element_bytes = 4;
  std::size_t after = 0, before = 0;
};

struct StepModel {
  std::vector<StepCompute> compute;         // in their order
  std::vector<StepCollective> collectives;  // in the order in which they start
  std::vector<StepGradient> gradients;      // in the order in which backward completes them
  double sent_element_bytes = 0;            // of summed gradients; 0: as the gradients themselves
  double roofline_seconds = 0;              // of the step; 0: not known
  bool sharded = false;  // class centers are shared out over the ranks: each number of them has its own step

  double seconds() const;  // sum over compute: the step of a device alone
};

// Seconds of each instruction of a Program, from its profile; 0 for one that wasn't stamped. `origin` names
// profile.json. Throws Error(bad_data) if the profile is of another program, lacks an instruction that
// computes or has a time that isn't one.
std::vector<double> profiled_seconds(const nlohmann::ordered_json& program,
                                     const nlohmann::ordered_json& profile, const std::string& origin);

// `program`: as program.json, `seconds`: one per instruction. Throws Error(bad_data) that names `origin`, the
// key and what is wrong.
StepModel step_model(const nlohmann::ordered_json& program, std::span<const double> seconds,
                     const std::string& origin);

// The same instructions in `seconds` together.
StepModel stretched_to(StepModel step, double seconds);

// Sums gradients in other buckets (comm/buckets.h, as a run lays them out), sent as `sent_element_bytes`
// each; 0: as the model's own.
StepModel with_buckets(StepModel step, const BucketOptions& options, double sent_element_bytes = 0);

double positive_or_zero(double value);  // 0 for NaN and infinities, too
// program.json with the times of the profile.json beside it. Throws Error(bad_data) that names the file and
// the remedy: it can't be read or is no such file, the profile is missing or of another program.
StepModel read_recorded_step(const std::filesystem::path& program_json);

}  // namespace plumb
