// Memory of the emulated GPUs, and page-locked memory of the host. The host can't touch a GPU's memory: its
// pages are closed except while operations run. New memory is full of NaNs.
#pragma once

#include <cstddef>
#include <map>

namespace plumb::gpu::emulated {

struct Allocation {
  std::size_t bytes = 0;
  int gpu = -1;  // -1: page-locked memory of the host
  std::size_t mapped_bytes = 0;
};

class DeviceMemory {
 public:
  std::byte* allocate(std::size_t bytes, int gpu);
  bool free(void* address, bool pinned);
  // The allocation that holds all of these bytes, or nullptr.
  const Allocation* find(const void* address, std::size_t bytes) const;
  std::size_t used_bytes(int gpu) const;
  std::size_t allocations() const { return allocations_.size(); }
  void open(bool accessible);

 private:
  std::map<std::byte*, Allocation> allocations_;
  int opened_ = 0;
};
DeviceMemory& device_memory();

// Opens the GPUs' memory to the host while it lives.
class DeviceMemoryAccess {
 public:
  DeviceMemoryAccess() { device_memory().open(true); }
  ~DeviceMemoryAccess() { device_memory().open(false); }
  DeviceMemoryAccess(const DeviceMemoryAccess&) = delete;
  DeviceMemoryAccess& operator=(const DeviceMemoryAccess&) = delete;
};

}  // namespace plumb::gpu::emulated
