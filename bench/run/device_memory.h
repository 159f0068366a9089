// Copies between the host and a device's buffers, in pieces through pinned memory where the device needs
// that, and messages of known integers in these buffers.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "comm/message_pattern.h"
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

// Changes what a rank reads of a message's first elements, before they are checked. For tests.
using MessageDamage = std::function<void(std::span<std::byte> message)>;

// Fills the buffer with the collective's input, by the pattern.
void fill_message(DeviceMemory& memory, const Collective& collective, const MessagePattern& pattern,
                  BufferId buffer);
// Overwrites the collective's buffer with equal bytes.
void overwrite_message(DeviceMemory& memory, const Collective& collective, std::byte byte);
// All elements of the collective's result that differ from the pattern's.
MessagePattern::Wrong check_message(DeviceMemory& memory, const Collective& collective,
                                    const MessagePattern& pattern, const MessageDamage& damage);

}  // namespace plumb
