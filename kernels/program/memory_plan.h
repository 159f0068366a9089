// Places every buffer of a Program in one arena, before any allocation.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/program/program.h"

namespace plumb {

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // bytes into the arena, per buffer (views included)
  std::array<std::size_t, kLanes> workspace_offsets{};
  std::array<std::size_t, kLanes> workspace_bytes{};  // largest workspace of the lane's instructions
  std::size_t arena_bytes = 0;
};

// The allocated arena: addresses on the device.
class Arena {
 public:
  Arena() = default;
  Arena(std::byte* base, const MemoryPlan& plan) : base_(base), plan_(&plan) {}
  std::byte* data(BufferId buffer) const { return base_ + plan_->offsets[buffer]; }
  template <typename T = float>
  T* as(BufferId buffer) const {
    return reinterpret_cast<T*>(data(buffer));
  }
  // Null if the instruction lacks the operand.
  template <typename T = std::byte, Access kAccess>
  T* optional(const std::optional<Operand<kAccess>>& operand) const {
    return operand ? as<T>(operand->buffer) : nullptr;
  }
  template <typename T = std::byte>
  T* workspace(Lane lane = Lane::compute) const {
    return reinterpret_cast<T*>(base_ + plan_->workspace_offsets[static_cast<std::size_t>(lane)]);
  }

 private:
  std::byte* base_ = nullptr;
  const MemoryPlan* plan_ = nullptr;
};

// Second half of binding an instruction: gives it its callable once the arena is allocated.
using Binder = std::function<ComputeFn(const Arena&)>;

// Two buffers share memory only if every use of one happens before every use of the other. Each lane has one
// workspace. Offsets are multiples of `alignment` bytes.
MemoryPlan plan_memory(const Program& program, std::size_t alignment = 4096);

// Bytes by role, as result.json reports them. Roles whose buffers never share memory are plain sums;
// "activations" is the rest of the arena: activations and their gradients, after sharing.
struct MemoryBytes {
  std::size_t parameters = 0, gradients = 0, optimizer = 0, activations = 0, workspace = 0, planned = 0;
};
MemoryBytes memory_bytes(const Program& program, const MemoryPlan& plan);

}  // namespace plumb
