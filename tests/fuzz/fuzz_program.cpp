// program.json of a run, as the report and the simulator read it.
#include "results/report/run_parts.h"
#include "results/simulation/step_model.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(program) {
  const auto json = json_of(data, size);
  refuse_or([&] { memory_use(json, "program.json", 3); });
  refuse_or([&] {
    const StepModel step = with_buckets(step_model(json, {}, "program.json"), {});
    for (const StepCollective& one : step.collectives)
      require(one.after <= step.compute.size() && one.before <= step.compute.size(),
              "a collective is outside");
  });
  return 0;
}
