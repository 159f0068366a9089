// A framework's trace in Chrome's format. An accepted trace is categorized completely: every instant of its
// steps exactly once.
#include <numeric>

#include "results/explain/framework_trace.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(trace) {
  const FileInMemory file(text_of(data, size));
  refuse_or([&] {
    const FrameworkTrace trace = read_framework_trace(file.path());
    require(std::accumulate(trace.time.begin(), trace.time.end(), std::int64_t{0}) == trace.total,
            "times don't add up to the steps");
    for (const std::int64_t time : trace.time) require(time >= 0, "a time is negative");
  });
  return 0;
}
