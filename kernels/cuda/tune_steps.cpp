#include <set>
#include <utility>

#include "kernels/cuda/step_tuner.h"

namespace plumb::cuda {
namespace {

// The first step with each problem.
struct Wanted {
  const Program* program = nullptr;
  const Step* step = nullptr;
};
std::vector<Wanted> distinct_problems(const StepTuner& tuner, const std::vector<const Program*>& programs) {
  std::set<std::string> seen;
  std::vector<Wanted> wanted;
  for (const Program* program : programs)
    for (const Step& step : program->steps) {
      const std::string problem = tuner.problem_of(*program, step);
      if (!problem.empty() && seen.insert(problem).second) wanted.push_back({program, &step});
    }
  return wanted;
}

}  // namespace

Tuning tune_steps(StepTuner& tuner, const Graph& graph, const DescribeOptions& options,
                  const DeviceLimits& limits, const TuningOptions& how) {
  DescribeOptions unfused = options;
  unfused.fuse = false;
  const Program fused = cuda::describe(graph, options, limits),
                plain = cuda::describe(graph, unfused, limits);
  const std::vector<Wanted> wanted = distinct_problems(tuner, {&fused, &plain});
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (how.progress) how.progress(i, wanted.size());
    tuner.trials_of(*wanted[i].program, *wanted[i].step);
  }

  Tuning tuning;
  DescribeOptions chosen = options;
  chosen.plain = choose_fusion(graph, options, limits, [&](const Program& program, const Step& step) {
    return tuner.cost_of(program, step);
  });
  const Program program = cuda::describe(graph, chosen, limits);
  for (const Step& step : program.steps) {
    const std::vector<EngineTrial>& trials = tuner.trials_of(program, step);
    if (!trials.empty() && trials.front().failure.empty())
      tuning.steps[step.name] = {trials.front().engine, trials.front().seconds};
  }
  tuning.plain = std::move(chosen.plain);
  tuning.trials = tuner.trials();
  for (const std::string& engine : tuner.gone_engines())
    tuning.remarks.push_back("the tuning cache names engine " + engine +
                             ", which is not there any more: its convolutions were timed again");
  return tuning;
}

}  // namespace plumb::cuda
