// The emulated GPU of tests/cuda_host.
#include "tests/conformance/device_under_test.h"

namespace plumb {

const char* const kTests = "-Large*";

DeviceUnderTest make_device_under_test() {
  // What is fused differs among these (kernels/cuda/plan/fusion.cpp).
  return {.device = cuda::make_device({.choice = DeviceChoice::cuda}),
          .other_compute_capabilities = {75, 80, 100}};
}

}  // namespace plumb
