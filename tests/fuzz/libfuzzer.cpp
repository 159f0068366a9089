// libFuzzer's entry to the only target of the program.
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const plumb::FuzzTarget target = plumb::fuzz_targets().begin()->second;
  return target(data, size);
}
