// Engine choice for instructions with several library engines: by timing, or by checking which engines build.
// Done once per run; all ranks use the same choice.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/program/describe.h"
#include "kernels/program/program.h"

namespace plumb {

// One engine tried on one problem.
struct EngineTrial {
  std::string engine;  // the library's name: "eng47_k2=5", "cublaslt 66 …"
  std::size_t workspace_bytes = 0;
  std::optional<double> seconds;  // empty: not timed or failed
  std::string failure;            // why the engine is unusable; empty if usable
};

struct InstructionChoice {
  std::string engine;
  std::optional<double> seconds;  // empty: not timed
  std::string problem;            // key of Tuning::trials; only on the rank that tuned
};

struct Tuning {
  std::vector<PlainLayer> plain;                           // layers that run unfused
  std::map<std::string, InstructionChoice> instructions;   // by Instruction::name
  std::map<std::string, std::vector<EngineTrial>> trials;  // by problem, best engine first
  std::vector<std::string> remarks;  // messages for the user, e.g. an unreadable cache file
};

struct TuningOptions {
  bool time_engines = true;  // false: only check which engines build and run
  // Called after each problem; `done` and `known` count problems so far.
  std::function<void(std::size_t done, std::size_t known)> progress;
};

// Sets Instruction::engine and Instruction::tuned_seconds of the instructions in `tuning`.
void apply_tuning(const Tuning& tuning, Program& program);

// Excludes trials and remarks, which stay on the rank that tuned.
nlohmann::json choices_to_json(const Tuning& tuning);
Tuning choices_from_json(const nlohmann::json& json);

// Header "problem,engine,workspace_bytes,milliseconds,chosen", then a line per trial; failed engines
// have no time. chosen: 1 if an instruction runs it.
std::string trials_csv(const Tuning& tuning);

}  // namespace plumb
