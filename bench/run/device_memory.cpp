#include "bench/run/device_memory.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/ranges.h"

namespace plumb {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{8} << 20;
constexpr std::chrono::microseconds kBetweenLaneQuestions{20};

}  // namespace

std::unique_ptr<Communicator> make_communicator(const Job& job, const std::string& comm, bool shares_gpu,
                                                Device& device, const Program& program) {
  if (comm == "nccl") return make_nccl_communicator(job, device.queue(Lane::communication), shares_gpu);
  std::vector<std::string> names = mapped(program.buffers, &Buffer::name);
  std::unique_ptr<Communicator> mpi = make_mpi_communicator(job, {.buffer_names = std::move(names)});
  HostStaging* staging = device.host_staging();
  return staging ? make_staged_communicator(std::move(mpi), *staging) : std::move(mpi);
}

void wait_for_lane(Device& device, Communicator* communicator, Lane lane) {
  HostStaging* const staging = device.host_staging();
  if (!staging) return;  // nothing is enqueued there
  const std::size_t end = staging->mark(lane);
  while (!staging->reached(end)) {
    if (communicator) communicator->progress();
    std::this_thread::sleep_for(kBetweenLaneQuestions);
  }
}

// Calls `each(first element, bytes)` for pieces of the message, where the host may touch them.
template <typename Each>
void DeviceMemory::in_pieces(const Collective& collective, BufferId buffer, Access access, Each each) {
  HostStaging* const staging = device_.host_staging();
  if (staging && !staging_) staging_ = staging->allocate_pinned(kPieceBytes);
  const auto copy = [&](std::byte* to, const std::byte* from, std::size_t bytes) {
    staging->copy(to, from, bytes, Lane::communication);
    device_.synchronize();
  };
  for (std::size_t begin = 0; begin < collective.bytes(); begin += kPieceBytes) {
    std::byte* const there = device_.data(buffer) + begin;
    std::byte* const here = staging ? staging_.get() : there;
    const std::size_t bytes = std::min(kPieceBytes, collective.bytes() - begin);
    if (staging && access == Access::read) copy(here, there, bytes);
    each(begin / bytes_of(collective.dtype), std::span(here, bytes));
    if (staging && access == Access::write) copy(there, here, bytes);
  }
}

void DeviceMemory::fill(const Collective& collective, const MessagePattern& pattern, BufferId buffer) {
  in_pieces(collective, buffer, Access::write,
            [&](std::size_t first, std::span<std::byte> bytes) { pattern.fill(bytes, first); });
}

void DeviceMemory::overwrite(const Collective& collective, std::byte byte) {
  in_pieces(collective, collective.buffer, Access::write,
            [&](std::size_t, std::span<std::byte> bytes) { std::ranges::fill(bytes, byte); });
}

MessagePattern::Wrong DeviceMemory::check(const Collective& collective, const MessagePattern& pattern,
                                          const MessageDamage& damage) {
  MessagePattern::Wrong all;
  in_pieces(collective, collective.buffer, Access::read, [&](std::size_t first, std::span<std::byte> bytes) {
    if (damage && first == 0) damage(bytes);
    const MessagePattern::Wrong wrong = pattern.check(bytes, first);
    const std::size_t elements = all.elements + wrong.elements;
    if (all.elements == 0) all = wrong;
    all.elements = elements;
  });
  return all;
}

}  // namespace plumb
