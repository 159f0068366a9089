// The tests that the device can take, or those that --gtest_filter or GTEST_FILTER names. Exit code 77 and a
// sentence where there is no device.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "tests/conformance/device_under_test.h"

int main(int argc, char** argv) {
  if (std::getenv("GTEST_FILTER") == nullptr) GTEST_FLAG_SET(filter, plumb::kTests);
  testing::InitGoogleTest(&argc, argv);
  if (!GTEST_FLAG_GET(list_tests)) {
    try {
      std::printf("on %s\n", plumb::make_device_under_test().device->description().c_str());
    } catch (const plumb::Error& error) {
      std::printf("skipped: %s\n", error.what());
      return 77;
    }
  }
  return RUN_ALL_TESTS();
}
