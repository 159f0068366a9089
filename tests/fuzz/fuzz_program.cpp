// program.json of a run, as the simulator reads it.
#include "results/simulation/step_model.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(program) {
  const auto json = json_of(data, size);
  refuse_or([&] {
    const StepModel step = with_buckets(step_model(json, {}, "program.json"), {});
    for (const StepCollective& one : step.collectives)
      require(one.after <= step.compute.size() && one.before <= step.compute.size(),
              "a collective is outside");
  });
  return 0;
}
