#include "bench/run/device_memory.h"

#include <algorithm>
#include <cstring>

namespace plumb {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{16} << 20;

}  // namespace

std::byte* DeviceMemory::staging() {
  if (!staging_) staging_ = device_.host_staging()->allocate_pinned(kStagingBytes);
  return staging_.get();
}

void DeviceMemory::write(BufferId buffer, std::size_t offset, std::span<const std::byte> bytes) {
  std::byte* const to = device_.data(buffer) + offset;
  if (!device_.host_staging()) {
    std::memcpy(to, bytes.data(), bytes.size());
    return;
  }
  for (std::size_t at = 0; at < bytes.size(); at += kStagingBytes) {
    const std::size_t now = std::min(kStagingBytes, bytes.size() - at);
    std::memcpy(staging(), bytes.data() + at, now);
    device_.host_staging()->copy(to + at, staging(), now, Lane::communication);
    device_.synchronize();
  }
}

void DeviceMemory::read(BufferId buffer, std::size_t offset, std::span<std::byte> bytes) {
  const std::byte* const from = device_.data(buffer) + offset;
  if (!device_.host_staging()) {
    std::memcpy(bytes.data(), from, bytes.size());
    return;
  }
  for (std::size_t at = 0; at < bytes.size(); at += kStagingBytes) {
    const std::size_t now = std::min(kStagingBytes, bytes.size() - at);
    device_.host_staging()->copy(staging(), from + at, now, Lane::communication);
    device_.synchronize();
    std::memcpy(bytes.data() + at, staging(), now);
  }
}

}  // namespace plumb
