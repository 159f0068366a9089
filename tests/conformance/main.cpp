// Skips all tests (exit code 77) where the device is not there.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/error.h"
#include "tests/conformance/device_under_test.h"

int main(int argc, char** argv) {
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
