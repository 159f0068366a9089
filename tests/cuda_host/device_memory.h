// Memory of the emulated GPUs, and page-locked host memory. GPU memory is inaccessible to the host: its pages
// are protected except while operations run. The first GiB of new memory is filled with NaNs.
#pragma once

#include <cstddef>
#include <map>

namespace plumb::gpu::emulated {

struct Allocation {
  std::size_t bytes = 0;
  int gpu = -1;  // -1: page-locked host memory
  std::size_t mapped_bytes = 0;
};

class DeviceMemory {
 public:
  std::byte* allocate(std::size_t bytes, int gpu);
  bool free(void* address, bool pinned);
  // The allocation that contains all these bytes, or nullptr.
  const Allocation* find(const void* address, std::size_t bytes) const;
  std::size_t used_bytes(int gpu) const;
  std::size_t allocations() const { return allocations_.size(); }
  void open(bool accessible);

 private:
  std::map<std::byte*, Allocation> allocations_;
  int opened_ = 0;
};
DeviceMemory& device_memory();

// Gives the host access to GPU memory during its lifetime.
class DeviceMemoryAccess {
 public:
  DeviceMemoryAccess() { device_memory().open(true); }
  ~DeviceMemoryAccess() { device_memory().open(false); }
  DeviceMemoryAccess(const DeviceMemoryAccess&) = delete;
  DeviceMemoryAccess& operator=(const DeviceMemoryAccess&) = delete;
};

}  // namespace plumb::gpu::emulated
