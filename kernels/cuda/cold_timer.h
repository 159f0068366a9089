// Times GPU work as in a training step: with operands in main memory, not in the L2 cache.
#pragma once

#include <functional>

#include "kernels/cuda/runtime.h"

namespace plumb::cuda {

class ColdTimer {
 public:
  // Allocates four times the current GPU's L2 cache, to flush it; nothing if memory is too short. Keeps the
  // GPU busy for kWarmUpSeconds because an idle GPU's clocks are low.
  explicit ColdTimer(cudaStream_t stream);

  // Median seconds of the work that `enqueue` puts on the stream, by events, over at least kMinRuns and until
  // kEnoughSeconds or kMaxRuns, after one warm-up run. Passes on any Error thrown by enqueuing or running.
  double seconds(const std::function<void()>& enqueue) const;

  static constexpr int kMinRuns = 3, kMaxRuns = 11;
  static constexpr double kEnoughSeconds = 0.05, kWarmUpSeconds = 0.2;

 private:
  double seconds_of_one(const std::function<void()>& enqueue) const;

  cudaStream_t stream_;
  std::size_t flush_bytes_ = 0;
  DeviceMemory flush_;
  Event begin_, end_;
};

}  // namespace plumb::cuda
