#include "kernels/cuda/memory_pool.h"

#include <algorithm>

namespace plumb::cuda {

std::byte* MemoryPool::allocate(std::size_t bytes) {
  constexpr std::size_t kAlignment = 512;  // more than any type or texture wants
  if (bytes > bytes_) return nullptr;
  const std::scoped_lock lock(mutex_);
  std::size_t begin = 0;
  for (const auto& [piece, end] : ends_) {
    if (begin + bytes <= piece) break;
    begin = (end + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (begin + bytes > bytes_) return nullptr;
  ends_[begin] = begin + std::max<std::size_t>(bytes, 1);
  return memory_.get() + begin;
}

void MemoryPool::free(std::byte* piece) {
  const std::scoped_lock lock(mutex_);
  ends_.erase(static_cast<std::size_t>(piece - memory_.get()));
}

}  // namespace plumb::cuda
