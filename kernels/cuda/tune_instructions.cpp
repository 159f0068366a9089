#include <set>

#include "kernels/cuda/instruction_tuner.h"

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

Tuning choose(InstructionTuner& tuner, const Graph& graph, const DescribeOptions& options,
              const DeviceLimits& limits) {
  Tuning tuning;
  DescribeOptions chosen = options;
  chosen.plain = tuning.plain =
      choose_fusion(graph, options, limits, [&](const Program& program, const Instruction& instruction) {
        return tuner.cost_of(program, instruction);
      });
  const Program program = cuda::describe(graph, chosen, limits);
  for (const Instruction& instruction : program.instructions) {
    const std::vector<EngineTrial>& trials = tuner.trials_of(program, instruction);
    if (!trials.empty() && trials.front().failure.empty())
      tuning.instructions[instruction.name] = {trials.front().engine, trials.front().seconds,
                                               tuner.problem_of(program, instruction)};
  }
  return tuning;
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

  Tuning tuning = choose(tuner, graph, options, limits);
  tuning.trials = tuner.trials();
  return tuning;
}

}  // namespace plumb::cuda
