// Device memory of a fixed size, handed out in pieces by any thread without waiting for the GPU.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "kernels/cuda/runtime.h"

namespace plumb::cuda {

class MemoryPool {
 public:
  explicit MemoryPool(std::size_t bytes) : memory_(allocate_device(bytes)), bytes_(bytes) {}

  // Null where no gap is large enough.
  std::byte* allocate(std::size_t bytes);
  void free(std::byte* piece);

 private:
  DeviceMemory memory_;
  std::size_t bytes_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> ends_;  // of the pieces, by their beginnings
};

}  // namespace plumb::cuda
