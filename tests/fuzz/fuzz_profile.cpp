// profile.json of a run; for the simulator, of a program with the same steps.
#include "results/report/run_parts.h"
#include "results/simulation/step_model.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(profile) {
  const auto json = json_of(data, size);
  refuse_or([&] { run_profile(json, "profile.json", 3); });
  refuse_or([&] { profiled_seconds(json, json, "profile.json"); });
  return 0;
}
