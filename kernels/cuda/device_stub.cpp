// Replaces the CUDA device in a build without a CUDA toolkit.
#include "base/error.h"
#include "kernels/device.h"

namespace plumb::cuda {

std::unique_ptr<Device> make_device(const DeviceOptions&) {
  throw Error(ExitCode::unavailable,
              "--device cuda: this build has no CUDA toolkit with nvcc, cuDNN and cuBLAS; use --device cpu, "
              "or install them and configure again");
}

std::vector<std::string> library_versions(bool) {
  return {};
}

}  // namespace plumb::cuda
