#include "kernels/device.h"

#include "base/error.h"

namespace plumb {

std::unique_ptr<Device> make_device(const DeviceOptions& options, std::string* why_not_cuda) {
  if (options.choice == DeviceChoice::cuda) return cuda::make_device(options);
  if (options.choice == DeviceChoice::cpu) return cpu::make_device(options);
  try {
    return cuda::make_device(options);
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable) throw;
    if (why_not_cuda) *why_not_cuda = error.what();
    return cpu::make_device(options);
  }
}

}  // namespace plumb
