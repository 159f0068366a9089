// A sweep file: its planned runs and their command lines.
#include "launch/sweep/sweep_plan.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(sweep) {
  const CheckOptions check = [](const std::string&, const std::vector<std::string>&) {
    return RunLength{120, 20};
  };
  refuse_or([&] {
    const SweepPlan plan = read_sweep_plan(text_of(data, size), "sweep.toml", check);
    plan_hash(plan);
    for (std::size_t i = 0; i < plan.runs.size() && i < 3; ++i)
      shell_text(command_of(plan, plan.runs[i], {"/sweep"}));
  });
  return 0;
}
