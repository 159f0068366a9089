#include <algorithm>
#include <set>

#include "kernels/cuda/instruction_tuner.h"
#include "kernels/cuda/written_results.h"

namespace plumb::cuda {
namespace {

// The first instruction with each problem.
struct Wanted {
  const Program* program = nullptr;
  const Instruction* instruction = nullptr;
};
std::vector<Wanted> distinct_problems(const InstructionTuner& tuner,
                                      const std::vector<const Program*>& programs) {
  std::set<std::string> seen;
  std::vector<Wanted> wanted;
  for (const Program* program : programs)
    for (const Instruction& instruction : program->instructions) {
      const std::string problem = tuner.problem_of(*program, instruction);
      if (!problem.empty() && seen.insert(problem).second) wanted.push_back({program, &instruction});
    }
  return wanted;
}

// The engines that work in this run, best first: the best one does, others may not have been captured.
std::vector<EngineTrial> working(const std::vector<EngineTrial>& trials, bool captures) {
  std::vector<EngineTrial> engines;
  for (const EngineTrial& trial : trials)
    if (trial.failure.empty() && (engines.empty() || trial.captured || !captures)) engines.push_back(trial);
  return engines;
}

// The workspace that every instruction has an engine for.
std::size_t least_workspace(InstructionTuner& tuner, const Program& program, bool captures) {
  std::size_t bytes = 0;
  for (const Instruction& instruction : program.instructions)
    if (const auto engines = working(tuner.trials_of(program, instruction), captures); !engines.empty())
      bytes = std::max(bytes, std::ranges::min(engines, {}, &EngineTrial::workspace_bytes).workspace_bytes);
  return bytes;
}

EngineChoices choose(InstructionTuner& tuner, const Graph& graph, const DescribeOptions& options,
                     const DeviceLimits& limits, bool captures, bool smallest) {
  EngineChoices choices;
  DescribeOptions chosen = options;
  chosen.plain = choices.plain =
      choose_fusion(graph, options, limits, [&](const Program& program, const Instruction& instruction) {
        InstructionCost cost = tuner.cost_of(program, instruction);
        if (smallest) cost.seconds = 0;
        return cost;
      });
  const Program program = cuda::describe(graph, chosen, limits);
  const std::size_t workspace_bytes = smallest ? least_workspace(tuner, program, captures) : SIZE_MAX;
  for (const Instruction& instruction : program.instructions) {
    const auto engines = working(tuner.trials_of(program, instruction), captures);
    const auto best = std::ranges::find_if(
        engines, [&](const EngineTrial& trial) { return trial.workspace_bytes <= workspace_bytes; });
    if (best != engines.end())
      choices.instructions[instruction.name] = {best->engine, best->seconds,
                                                tuner.problem_of(program, instruction)};
  }
  return choices;
}

}  // namespace

Tuning tune_instructions(InstructionTuner& tuner, const Graph& graph, const DescribeOptions& options,
                         const DeviceLimits& limits, const TuningOptions& how) {
  DescribeOptions unfused = options;
  unfused.fuse = false;
  const Program fused = cuda::describe(graph, options, limits),
                plain = cuda::describe(graph, unfused, limits);
  const std::vector<Wanted> wanted = distinct_problems(tuner, {&fused, &plain});
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    tuner.trials_of(*wanted[i].program, *wanted[i].instruction);
    if (how.progress) how.progress(i + 1, wanted.size());
  }

  Tuning tuning{choose(tuner, graph, options, limits, how.captures, /*smallest=*/false)};
  if (how.time_engines) tuning.smallest = choose(tuner, graph, options, limits, how.captures, true);
  tuning.trials = tuner.trials();
  for (const std::string& engine : tuner.gone_engines())
    tuning.remarks.push_back("the tuning cache names engine " + engine +
                             ", which is not there any more: its convolutions were timed again");
  for (const auto& [problem, trials] : tuning.trials)
    for (const EngineTrial& trial : trials)
      if (trial.failure.starts_with(kOtherValues))
        tuning.remarks.push_back("the engine " + trial.engine + " for " + problem + " is left out: it " +
                                 trial.failure);
  return tuning;
}

}  // namespace plumb::cuda
