#include <gtest/gtest.h>

#include "kernels/device.h"
#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

TEST(CudaStub, SaysThatTheBuildHasNoCudaAndWhatWasLookedFor) {
  expect_error(ExitCode::unavailable, {"--device cuda", "nvcc", "cuDNN", "--device cpu"},
               [] { cuda::make_device({.choice = DeviceChoice::cuda}); });
}

}  // namespace
}  // namespace plumb
