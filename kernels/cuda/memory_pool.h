// Memory that any thread gets and gives back without waiting for the GPU: device memory of a fixed size, in
// pieces; page-locked memory, which is kept.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

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

// Allocating and freeing page-locked memory wait for the GPU (CUDA C++ Programming Guide, "Implicit
// Synchronization"), so what was freed serves later calls.
class PageLockedCache {
 public:
  // Null where there is no memory.
  std::byte* allocate(std::size_t bytes);
  void free(std::byte* piece);

 private:
  struct Piece {
    PinnedMemory memory;
    std::size_t bytes;
    bool used;
  };
  std::mutex mutex_;
  std::vector<Piece> pieces_;
};

}  // namespace plumb::cuda
