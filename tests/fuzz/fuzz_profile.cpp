// profile.json of a run.
#include "results/report/run_parts.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = json_of(data, size);
  refuse_or([&] { run_profile(json, "profile.json", 3); });
  return 0;
}
