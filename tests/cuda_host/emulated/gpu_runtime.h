// A GPU played on the CPU, for tests: the same kernel source, one fiber per CUDA thread.
// Blocks run one after the other. Barriers and warp exchanges are meetings of fibers.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#undef __global__
#undef __device__
#undef __shared__
#define __global__
#define __device__
#define __shared__ static  // one block at a time, so one copy per kernel is the block's copy
#define threadIdx (::plumb::gpu::emulation().thread_index())
#define blockIdx (::plumb::gpu::emulation().block_index)
#define blockDim (::plumb::gpu::emulation().block_size)
#define gridDim (::plumb::gpu::emulation().grid_size)

namespace plumb::gpu {

// A place where `expected` fibers meet; the last one to come releases the others.
struct Meeting {
  unsigned arrived = 0;
  unsigned generation = 0;
};

class Emulation {
 public:
  dim3 grid_size, block_size;
  uint3 block_index{};

  uint3 thread_index() const { return fibers_[current_].index; }
  unsigned lane() const { return current_ % 32; }
  std::uint64_t& slot(unsigned lane) { return slots_[current_ / 32][lane]; }
  unsigned char* shared() { return shared_.data(); }

  void sync_block() { meet(block_meeting_, block_size.x * block_size.y * block_size.z); }
  void sync_warp(unsigned mask) { meet(warp_meetings_[current_ / 32], __builtin_popcount(mask)); }

  void run(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& body) {
    grid_size = grid;
    block_size = block;
    shared_.assign(shared_bytes + 16, 0);
    for (block_index.z = 0; block_index.z < grid.z; ++block_index.z)
      for (block_index.y = 0; block_index.y < grid.y; ++block_index.y)
        for (block_index.x = 0; block_index.x < grid.x; ++block_index.x) run_block(body);
  }

 private:
  static constexpr std::size_t kStackBytes = 64 * 1024;
  struct Fiber {
    ucontext_t context;
    uint3 index;
    bool done = false;
    std::unique_ptr<unsigned char[]> stack = std::make_unique<unsigned char[]>(kStackBytes);
  };

  void meet(Meeting& meeting, unsigned expected) {
    const unsigned generation = meeting.generation;
    if (++meeting.arrived == expected) {
      meeting = {0, generation + 1};
      progress_ = true;
      return;
    }
    while (meeting.generation == generation) swapcontext(&fibers_[current_].context, &scheduler_);
  }

  static void start();

  void run_block(const std::function<void()>& body) {
    const unsigned count = block_size.x * block_size.y * block_size.z;
    body_ = &body;
    alive_ = count;
    block_meeting_ = {};
    warp_meetings_.assign((count + 31) / 32, {});
    slots_.assign((count + 31) / 32, {});
    if (fibers_.size() < count) fibers_.resize(count);
    for (unsigned i = 0; i < count; ++i) {
      Fiber& fiber = fibers_[i];
      fiber.done = false;
      fiber.index = {i % block_size.x, i / block_size.x % block_size.y, i / block_size.x / block_size.y};
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.get();
      fiber.context.uc_stack.ss_size = kStackBytes;
      fiber.context.uc_link = &scheduler_;
      makecontext(&fiber.context, &Emulation::start, 0);
    }
    std::vector<unsigned> order(count);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random_);
    while (alive_ > 0) {
      progress_ = false;
      for (unsigned i : order) {
        if (fibers_[i].done) continue;
        current_ = i;
        swapcontext(&scheduler_, &fibers_[i].context);
      }
      if (!progress_) throw std::logic_error("a barrier or warp exchange is not reached by all its threads");
    }
  }

  const std::function<void()>* body_ = nullptr;
  std::vector<Fiber> fibers_;
  std::vector<unsigned char> shared_;
  std::vector<std::array<std::uint64_t, 32>> slots_;
  std::vector<Meeting> warp_meetings_;
  Meeting block_meeting_;
  ucontext_t scheduler_{};
  unsigned current_ = 0, alive_ = 0;
  bool progress_ = false;
  std::mt19937 random_{std::getenv("EMULATED_GPU_SEED") ? unsigned(std::atoi(std::getenv("EMULATED_GPU_SEED"))) : 1u};
};

inline Emulation& emulation() {  // test-only: a launch has nowhere else to put it
  static Emulation instance;
  return instance;
}

inline void Emulation::start() {
  Emulation& self = emulation();
  (*self.body_)();
  self.fibers_[self.current_].done = true;
  self.progress_ = true;
  --self.alive_;
}

template <typename T>
T* dynamic_shared() {
  return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(emulation().shared()) + 15) / 16 * 16);
}

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t,
            Arguments... arguments) {
  emulation().run(grid, block, shared_bytes, [&] { kernel(static_cast<Parameters>(arguments)...); });
}

// Every lane of the mask brings a value; `source` says whose value this lane takes.
template <typename T>
T exchange(unsigned mask, T value, unsigned source) {
  static_assert(sizeof(T) <= 8);
  Emulation& self = emulation();
  __builtin_memcpy(&self.slot(self.lane()), &value, sizeof(T));
  self.sync_warp(mask);
  T taken = value;
  if (source < 32 && (mask >> source & 1u)) __builtin_memcpy(&taken, &self.slot(source), sizeof(T));
  self.sync_warp(mask);
  return taken;
}

}  // namespace plumb::gpu

inline void __syncthreads() { plumb::gpu::emulation().sync_block(); }
inline void __syncwarp(unsigned mask = ~0u) { plumb::gpu::emulation().sync_warp(mask); }
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  return plumb::gpu::exchange(mask, value, plumb::gpu::emulation().lane() ^ unsigned(lanes));
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes) {
  return plumb::gpu::exchange(mask, value, plumb::gpu::emulation().lane() + lanes);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane) {
  return plumb::gpu::exchange(mask, value, unsigned(lane) % 32);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (plumb::gpu::exchange(mask, predicate ? 1 : 0, lane) && (mask >> lane & 1u)) votes |= 1u << lane;
  return votes;
}
template <typename T>
T atomicAdd(T* address, T value) {  // fibers are never interrupted between these two lines
  const T old = *address;
  *address = old + value;
  return old;
}
