#include "kernels/program/memory_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "kernels/program/dependencies.h"

namespace plumb {
namespace {

std::size_t round_up(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// When a root is in use, through itself or its views, as counts of each lane's instructions.
struct Lifetime {
  bool used = false;
  LaneCounts begin;  // this many have ended before any use of it starts
  LaneCounts end{};  // this many have ended once all its uses have
};

std::vector<Lifetime> lifetimes_of_roots(const Program& program) {
  const HappensBefore happens_before(program);
  std::vector<Lifetime> lifetimes(program.buffers.size());
  for (Lifetime& lifetime : lifetimes) lifetime.begin.fill(std::numeric_limits<std::size_t>::max());
  for (InstructionId id = 0; id < program.instructions.size(); ++id) {
    const LaneCounts& ended = happens_before.ended_before(id);
    for (const BufferUse& use : program.instructions[id].uses()) {
      Lifetime& lifetime = lifetimes[root_of(program, use.buffer)];
      lifetime.used = true;
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        lifetime.begin[lane] = std::min(lifetime.begin[lane], ended[lane]);
      lifetime.end[static_cast<std::size_t>(program.instructions[id].lane)] = happens_before.position(id);
    }
  }
  return lifetimes;
}

bool ends_before(const Lifetime& a, const Lifetime& b) {
  return std::ranges::equal(a.end, b.begin, std::ranges::less_equal());
}

std::vector<BufferId> persistent_roots(const Program& program) {
  std::vector<BufferId> ids;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (!program.buffers[id].view && program.buffers[id].persistent) ids.push_back(id);
  }
  return ids;
}

std::vector<BufferId> shareable_roots(const Program& program, const std::vector<Lifetime>& lifetimes) {
  std::vector<BufferId> ids;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (!buffer.view && !buffer.persistent && buffer.bytes > 0 && lifetimes[id].used) ids.push_back(id);
  }
  return ids;
}

struct Placement {
  BufferId id = 0;
  std::size_t begin = 0, end = 0;
};

// Places buffers in the given order, each at the lowest free offset from `base`: no conflicting buffer
// overlaps it. Returns the end of the region.
std::size_t place_in_order(const std::vector<BufferId>& order, const Program& program,
                           const std::vector<Lifetime>& lifetimes, std::size_t base, std::size_t alignment,
                           std::vector<std::size_t>& offsets) {
  std::vector<Placement> placed;  // by begin
  std::size_t region_end = base;
  for (BufferId id : order) {
    const std::size_t bytes = round_up(program.buffers[id].bytes, alignment);
    std::size_t offset = base;
    for (const Placement& other : placed) {
      if (other.begin >= offset + bytes) break;
      if (other.end <= offset) continue;
      const bool ordered =
          ends_before(lifetimes[id], lifetimes[other.id]) || ends_before(lifetimes[other.id], lifetimes[id]);
      if (!ordered) offset = other.end;
    }
    const Placement placement{id, offset, offset + bytes};
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placement::begin), placement);
    offsets[id] = offset;
    region_end = std::max(region_end, placement.end);
  }
  return region_end;
}

}  // namespace

MemoryPlan plan_memory(const Program& program, std::size_t alignment) {
  const std::vector<Lifetime> lifetimes = lifetimes_of_roots(program);

  MemoryPlan plan;
  plan.offsets.assign(program.buffers.size(), 0);
  for (BufferId id : persistent_roots(program)) {
    plan.offsets[id] = plan.arena_bytes;
    plan.arena_bytes += round_up(program.buffers[id].bytes, alignment);
  }
  std::vector<BufferId> order = shareable_roots(program, lifetimes);
  std::ranges::stable_sort(order, std::greater{}, [&](BufferId id) { return program.buffers[id].bytes; });
  plan.arena_bytes = place_in_order(order, program, lifetimes, plan.arena_bytes, alignment, plan.offsets);
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const std::optional<View>& view = program.buffers[id].view;
    if (view) plan.offsets[id] = plan.offsets[view->root] + view->offset;
  }
  for (const Instruction& instruction : program.instructions) {
    std::size_t& bytes = plan.workspace_bytes[static_cast<std::size_t>(instruction.lane)];
    bytes = std::max(bytes, instruction.workspace_bytes);
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    plan.workspace_offsets[lane] = plan.arena_bytes;
    plan.arena_bytes += round_up(plan.workspace_bytes[lane], alignment);
  }
  return plan;
}

MemoryBytes memory_bytes(const Program& program, const MemoryPlan& plan) {
  MemoryBytes bytes;
  for (BufferId id : persistent_roots(program)) {
    const Buffer& buffer = program.buffers[id];
    if (buffer.role == Role::gradient)
      bytes.gradients += buffer.bytes;
    else if (buffer.role == Role::optimizer)
      bytes.optimizer += buffer.bytes;
    else if (buffer.role != Role::input && buffer.role != Role::activation &&
             buffer.role != Role::activation_gradient)
      bytes.parameters += buffer.bytes;
  }
  bytes.workspace = std::accumulate(plan.workspace_bytes.begin(), plan.workspace_bytes.end(), std::size_t{0});
  bytes.planned = plan.arena_bytes;
  bytes.activations = bytes.planned - bytes.parameters - bytes.gradients - bytes.optimizer - bytes.workspace;
  return bytes;
}

}  // namespace plumb
