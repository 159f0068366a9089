// Takes the place of the CUDA device in a build without a CUDA toolkit.
#include "kernels/device.h"
#include "models/error.h"

namespace plumb::cuda {

std::unique_ptr<Device> make_device(const DeviceOptions&) {
  throw Error(
      ExitCode::unavailable,
      "--device cuda: this build has no CUDA (no CUDA toolkit with nvcc, cuDNN and cuBLAS was found when it "
      "was configured); use --device cpu, or install them and configure again.");
}

}  // namespace plumb::cuda
