#include "tests/conformance/device_under_test.h"

namespace plumb {

const char* const kTests = "-Gpu*:Large*";

DeviceUnderTest make_device_under_test() {
  return {.device = cpu::make_device({.choice = DeviceChoice::cpu})};
}

}  // namespace plumb
