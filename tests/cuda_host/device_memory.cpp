#include "tests/cuda_host/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace plumb::gpu::emulated {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
// Larger allocations only take memory away from a test's next one.
constexpr std::size_t kMostFilledBytes = std::size_t{1} << 30;

}  // namespace

DeviceMemory& device_memory() {
  static DeviceMemory memory;  // the CUDA API leaves no other place for it
  return memory;
}

std::byte* DeviceMemory::allocate(std::size_t bytes, int gpu) {
  const std::size_t unit = bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  const std::size_t mapped = (bytes + unit - 1) / unit * unit;
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (unit == kHugePageBytes) madvise(memory, mapped, MADV_HUGEPAGE);
  std::memset(memory, 0xFF, std::min(bytes, kMostFilledBytes));
  if (gpu >= 0 && opened_ == 0) mprotect(memory, mapped, PROT_NONE);
  auto* address = static_cast<std::byte*>(memory);
  allocations_[address] = {.bytes = bytes, .gpu = gpu, .mapped_bytes = mapped};
  return address;
}

bool DeviceMemory::free(void* address, bool pinned) {
  const auto found = allocations_.find(static_cast<std::byte*>(address));
  if (found == allocations_.end() || (found->second.gpu < 0) != pinned) return false;
  munmap(address, found->second.mapped_bytes);
  allocations_.erase(found);
  return true;
}

const Allocation* DeviceMemory::find(const void* address, std::size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(address);
  auto after = allocations_.upper_bound(const_cast<std::byte*>(first));
  if (after == allocations_.begin()) return nullptr;
  const auto& [base, allocation] = *--after;
  return first + bytes <= base + allocation.bytes ? &allocation : nullptr;
}

std::size_t DeviceMemory::used_bytes(int gpu) const {
  std::size_t used = 0;
  for (const auto& [address, allocation] : allocations_)
    if (allocation.gpu == gpu) used += allocation.bytes;
  return used;
}

void DeviceMemory::open(bool accessible) {
  const bool was_open = opened_ > 0;
  opened_ += accessible ? 1 : -1;
  if (was_open == (opened_ > 0)) return;
  for (const auto& [address, allocation] : allocations_)
    if (allocation.gpu >= 0)
      mprotect(address, allocation.mapped_bytes, accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
}

}  // namespace plumb::gpu::emulated
