#include "bench/run/device_memory.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace plumb {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{16} << 20;
constexpr std::size_t kPieceElements = std::size_t{1} << 20;  // filled and checked at a time

// Calls `each(first element, byte offset, bytes)` for pieces of the message; `bytes` is scratch memory.
template <typename Each>
void in_pieces(const Collective& collective, Each each) {
  const std::size_t element_bytes = bytes_of(collective.dtype);
  std::vector<std::byte> scratch(std::min(collective.elements, kPieceElements) * element_bytes);
  for (std::size_t first = 0; first < collective.elements; first += kPieceElements) {
    const std::size_t count = std::min(kPieceElements, collective.elements - first);
    each(first, first * element_bytes, std::span(scratch).first(count * element_bytes));
  }
}

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

void fill_message(DeviceMemory& memory, const Collective& collective, const MessagePattern& pattern,
                  BufferId buffer) {
  in_pieces(collective, [&](std::size_t first, std::size_t offset, std::span<std::byte> bytes) {
    pattern.fill(bytes, first);
    memory.write(buffer, offset, bytes);
  });
}

void overwrite_message(DeviceMemory& memory, const Collective& collective, std::byte byte) {
  in_pieces(collective, [&](std::size_t, std::size_t offset, std::span<std::byte> bytes) {
    std::ranges::fill(bytes, byte);
    memory.write(collective.buffer, offset, bytes);
  });
}

MessagePattern::Wrong check_message(DeviceMemory& memory, const Collective& collective,
                                    const MessagePattern& pattern, const MessageDamage& damage) {
  MessagePattern::Wrong all;
  in_pieces(collective, [&](std::size_t first, std::size_t offset, std::span<std::byte> bytes) {
    memory.read(collective.buffer, offset, bytes);
    if (damage && first == 0) damage(bytes);
    const MessagePattern::Wrong wrong = pattern.check(bytes, first);
    const std::size_t elements = all.elements + wrong.elements;
    if (all.elements == 0) all = wrong;
    all.elements = elements;
  });
  return all;
}

}  // namespace plumb
