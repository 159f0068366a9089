#include "kernels/device.h"

#include "base/error.h"

namespace plumb {

namespace {

[[noreturn]] void refuse(const Device& device, const std::string& what) {
  throw Error(ExitCode::internal, device.description() + " " + what);
}

}  // namespace

std::shared_ptr<std::byte> Device::allocate_pinned(std::size_t) {
  refuse(*this, "has no memory of its own to stage");
}
void Device::copy(std::byte*, const std::byte*, std::size_t, Lane) {
  refuse(*this, "has no memory of its own to copy");
}
std::size_t Device::mark(Lane) {
  refuse(*this, "has no lanes to mark");
}
bool Device::reached(std::size_t) {
  refuse(*this, "has no lanes to mark");
}
void Device::capture(const std::function<void()>&) {
  refuse(*this, "can't capture an iteration");
}
void Device::replay() {
  refuse(*this, "has captured no iteration");
}

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
