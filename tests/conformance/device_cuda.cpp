// The first GPU, as plumb_cuda has it.
#include "tests/conformance/device_under_test.h"

namespace plumb {

const char* const kTests = "*";

DeviceUnderTest make_device_under_test() {
  return {.device = cuda::make_device({.choice = DeviceChoice::cuda}), .is_fast = true};
}

}  // namespace plumb
