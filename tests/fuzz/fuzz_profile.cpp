// profile.json of a run; for the simulator, of a program with the same steps.
#include "results/record/profile.h"
#include "results/simulation/step_model.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(profile) {
  const auto json = json_of(data, size);
  refuse_or([&] {
    RunProfile profile;
    fields::read_all(ops_reader(json, "profile.json", kProfileFormat), profile);
  });
  refuse_or([&] { profiled_seconds(json, json, "profile.json"); });
  return 0;
}
