// How a device computes the steps for which its libraries offer several engines: found by timing, or by
// asking what builds, once per run and the same on every rank.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/describe.h"
#include "kernels/program.h"

namespace plumb {

// One engine tried on one problem.
struct EngineTrial {
  std::string engine;  // as its library names it: "eng47_k2=5", "cublaslt 66 …"
  std::size_t workspace_bytes = 0;
  std::optional<double> seconds;  // empty: not timed, or it failed
  std::string failure;            // why it can't be used; empty if it can
};

struct StepChoice {
  std::string engine;
  std::optional<double> seconds;  // empty: not timed
};

struct Tuning {
  std::vector<PlainLayer> plain;                           // where fused engines gave way
  std::map<std::string, StepChoice> steps;                 // by Step::name
  std::map<std::string, std::vector<EngineTrial>> trials;  // by problem, the engine to use first
  std::vector<std::string> remarks;  // sentences for the user, e.g. about a cache file that can't be read
};

struct TuningOptions {
  bool time_engines = true;  // false: only ask which engines build and run
  // Called after each problem with the number done and known so far.
  std::function<void(std::size_t done, std::size_t known)> progress;
};

// Sets Step::engine and Step::tuned_seconds of the steps that `tuning` names.
void apply_tuning(const Tuning& tuning, Program& program);

// All but the trials and remarks, which stay with the rank that tuned.
nlohmann::json choices_to_json(const Tuning& tuning);
Tuning choices_from_json(const nlohmann::json& json);

// "problem,engine,workspace_bytes,milliseconds,chosen" and a line per trial; a failed engine has no time.
std::string trials_csv(const Tuning& tuning);

}  // namespace plumb
