#include "kernels/cuda/memory_pool.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace plumb::cuda {

std::byte* MemoryPool::allocate(std::size_t bytes) {
  constexpr std::size_t kAlignment = 512;   // more than any type or texture wants
  bytes = std::max<std::size_t>(bytes, 1);  // pieces are known by where they begin
  if (bytes > bytes_) return nullptr;
  const std::scoped_lock lock(mutex_);
  std::size_t begin = 0;
  for (const auto& [piece, end] : ends_) {
    if (begin + bytes <= piece) break;
    begin = (end + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (begin + bytes > bytes_) return nullptr;
  ends_[begin] = begin + bytes;
  return memory_.get() + begin;
}

void MemoryPool::free(std::byte* piece) {
  const std::scoped_lock lock(mutex_);
  ends_.erase(static_cast<std::size_t>(piece - memory_.get()));
}

std::byte* PageLockedCache::allocate(std::size_t bytes) {
  const std::size_t wanted = std::bit_ceil(std::max<std::size_t>(bytes, 1));
  const std::scoped_lock lock(mutex_);
  for (Piece& piece : pieces_)
    if (!piece.used && piece.bytes == wanted) {
      piece.used = true;
      return piece.memory.get();
    }
  try {
    pieces_.push_back({allocate_pinned(wanted), wanted, true});
  } catch (const Error&) {
    return nullptr;
  }
  return pieces_.back().memory.get();
}

void PageLockedCache::free(std::byte* piece) {
  const std::scoped_lock lock(mutex_);
  std::ranges::find(pieces_, piece, [](const Piece& one) { return one.memory.get(); })->used = false;
}

}  // namespace plumb::cuda
