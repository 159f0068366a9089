// Copies between the host and a device's buffers, in pieces through page-locked memory where the device wants
// that.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "kernels/device.h"

namespace plumb {

class DeviceMemory {
 public:
  // `device` must outlive it. Allocates its page-locked memory (16 MiB) at the first copy.
  explicit DeviceMemory(Device& device) : device_(device) {}

  // From byte `offset` of the buffer on. Both wait until the device is idle.
  void write(BufferId buffer, std::size_t offset, std::span<const std::byte> bytes);
  void read(BufferId buffer, std::size_t offset, std::span<std::byte> bytes);

  // Keeps the page-locked memory until the process ends: freeing it would wait for a device that hangs.
  void abandon() { new std::shared_ptr<std::byte>(std::move(staging_)); }

 private:
  std::byte* staging();

  Device& device_;
  std::shared_ptr<std::byte> staging_;
};

}  // namespace plumb
