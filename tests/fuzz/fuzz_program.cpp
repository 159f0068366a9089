// program.json of a run, as the report reads it.
#include "results/report/run_parts.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = json_of(data, size);
  refuse_or([&] { memory_picture(json, "program.json", 3); });
  return 0;
}
