// One block of CUDA threads at a time, played by fibers. A thread runs until it has to wait for others at a
// barrier or in an exchange within its warp; threads and blocks come in an order that EMULATED_GPU_SEED
// chooses.
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

// Where the running thread is: threadIdx, blockIdx, blockDim, gridDim.
struct Place {
  uint3 thread{}, block{};
  dim3 block_size, grid_size;
};
extern Place place;

// A number that differs from run to run only by EMULATED_GPU_SEED (1 if it is not set).
std::uint32_t order_seed();

inline constexpr unsigned kWarpLanes = 32;

struct Worker {
  explicit Worker(std::size_t slot) : fiber(slot) {}
  Fiber fiber;
  uint3 index{};
  unsigned thread = 0;  // in the block
  std::source_location waits_at;
};

// What the lanes of one warp bring to an exchange, and what they take from it.
struct Warp {
  // Fills `taken` of the lanes in `lanes`.
  using Combine = void (*)(Warp& warp, std::uint32_t lanes);

  std::uint32_t there = 0;    // lanes that exist and have not returned
  std::uint32_t waiting = 0;  // … of which these wait
  std::array<std::uint64_t, kWarpLanes> brought{}, taken{};
  std::array<std::uint32_t, kWarpLanes> mask{}, source{};
  std::array<Combine, kWarpLanes> combine{};
  std::array<Worker*, kWarpLanes> waiter{};
};

class Block {
 public:
  // Runs `body` once for each thread of the grid. Throws Error(internal) with the place in the source where
  // threads wait for others that never come.
  void run(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& body);

  // From now on a launch runs its first block and its last one, and no others: for sizes that take too long
  // otherwise.
  void run_corners_only(bool only) { corners_only_ = only; }

  // __syncthreads and its kin: how many threads brought true.
  unsigned synchronize(bool predicate, std::source_location where);
  // Lanes of `mask` bring a value each and take what `combine` gives them.
  std::uint64_t exchange(std::uint32_t mask, std::uint64_t value, std::uint32_t source, Warp::Combine combine,
                         std::source_location where);
  unsigned lane() const { return current_->thread % kWarpLanes; }
  std::byte* shared() { return shared_.get(); }

 private:
  static void work();  // what a worker's fiber does: threads, until none is left to begin
  void run_corners(dim3 grid);
  void run_block();
  void begin_thread();
  void end_thread();
  void wait(std::source_location where);  // of the current thread, until it is made ready
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
  std::vector<Thread> order_;  // in which threads begin
  unsigned threads_ = 0, begun_ = 0, ended_ = 0;
  bool begins_first_ = true;  // threads that have not begun go before those that may go on
  std::vector<Warp> warps_;
  std::vector<Worker*> at_barrier_;
  unsigned brought_true_ = 0, counted_true_ = 0;
  std::unique_ptr<std::byte[]> shared_;
  std::size_t shared_bytes_ = 0;
  std::string failure_;
  bool corners_only_ = false;
  std::mt19937 random_{order_seed()};
};
Block& block();  // the one that kernels find themselves in

std::uint64_t clock_nanoseconds();

}  // namespace plumb::gpu::emulated
