// Runs one block of CUDA threads at a time, as fibers. A thread runs until it waits at a barrier or in a warp
// exchange. EMULATED_GPU_SEED sets the order of threads and blocks.
#pragma once

#include <vector_types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <source_location>
#include <string>
#include <vector>

#include "tests/cuda_host/emulated/fiber.h"

namespace plumb::gpu::emulated {

// The running thread's threadIdx, blockIdx, blockDim, gridDim.
struct Place {
  uint3 thread{}, block{};
  dim3 block_size, grid_size;
};
extern Place place;
inline std::size_t thread_of_block() {
  const auto& [x, y, z] = place.thread;
  return (std::size_t{z} * place.block_size.y + y) * place.block_size.x + x;
}

// Depends only on EMULATED_GPU_SEED (1 if unset).
std::uint32_t order_seed();

inline constexpr unsigned kWarpLanes = 32;

struct Worker {
  explicit Worker(std::size_t slot) : fiber(slot) {}
  Fiber fiber;
  uint3 index{};
  unsigned thread = 0;  // in the block
  std::source_location waits_at;
};

// Inputs and outputs of a warp's lanes in an exchange.
struct Warp {
  // Fills `taken` for the lanes in `lanes`.
  using Combine = void (*)(Warp& warp, std::uint32_t lanes);

  std::uint32_t there = 0;    // lanes that exist and haven't returned
  std::uint32_t waiting = 0;  // those of them that wait
  std::array<std::uint64_t, kWarpLanes> brought{}, taken{};
  std::array<std::uint32_t, kWarpLanes> mask{}, source{};
  std::array<Combine, kWarpLanes> combine{};
  std::array<Worker*, kWarpLanes> waiter{};
};

class Block {
 public:
  // Runs `body` once per thread of the grid. Throws Error(internal) with the source location where threads
  // wait for others that never arrive.
  void run(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& body);

  // Later launches run only their first and last block, for sizes that would take too long.
  void run_corners_only(bool only) { corners_only_ = only; }

  // __syncthreads and its variants: returns how many threads passed true.
  unsigned synchronize(bool predicate, std::source_location where);
  // Each lane in `mask` contributes a value and gets combine's result.
  std::uint64_t exchange(std::uint32_t mask, std::uint64_t value, std::uint32_t source, Warp::Combine combine,
                         std::source_location where);
  unsigned lane() const { return current_->thread % kWarpLanes; }
  std::byte* shared() { return shared_.get(); }

 private:
  static void work();  // a worker fiber's loop: runs threads until all have started
  void run_corners(dim3 grid);
  void run_block();
  void begin_thread();
  void end_thread();
  void wait(std::source_location where);  // suspends the current thread until it is made ready
  void complete(Warp& warp, std::uint32_t lanes);
  bool has_met(const Warp& warp, unsigned lane) const;
  Worker& next_worker();
  [[noreturn]] void give_up(std::string why);
  std::string who_waits() const;
  void forget_workers();

  Fiber host_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> free_, ready_;
  Worker* current_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  struct Thread {
    unsigned number = 0;
    uint3 index{};
  };
  std::vector<Thread> order_;  // start order of threads
  unsigned threads_ = 0, begun_ = 0, ended_ = 0;
  bool begins_first_ = true;  // new threads start before waiting ones resume
  std::vector<Warp> warps_;
  std::vector<Worker*> at_barrier_;
  unsigned brought_true_ = 0, counted_true_ = 0;
  std::unique_ptr<std::byte[]> shared_;
  std::size_t shared_bytes_ = 0;
  std::string failure_;
  bool corners_only_ = false;
  std::mt19937 random_{order_seed()};
};
Block& block();  // the running kernel's block

std::uint64_t clock_nanoseconds();
// Puts the clock forward, for work that only pretends to take long.
void skip_time(std::uint64_t nanoseconds);

}  // namespace plumb::gpu::emulated
