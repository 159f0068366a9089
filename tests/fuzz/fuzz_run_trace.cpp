// trace.json of a run, as the report reads it.
#include "results/report/run_parts.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(run_trace) {
  const auto json = json_of(data, size);
  refuse_or([&] { run_trace(json, "trace.json", 3); });
  return 0;
}
