// Times work on a GPU as a training step meets it: with operands in main memory, not in the L2 cache.
#pragma once

#include <functional>

#include "kernels/cuda/runtime.h"

namespace plumb::cuda {

class ColdTimer {
 public:
  // Takes four times the L2 cache of the current GPU, to push everything else out of it; none if there is no
  // room for that. Keeps the GPU busy for kWarmUpSeconds, as an idle one's clocks are low.
  explicit ColdTimer(cudaStream_t stream);

  // Median seconds of what `enqueue` enqueues on the stream, by events around it, over at least kMinRuns and
  // until kEnoughSeconds or kMaxRuns; one run before that warms up. Throws Error as enqueuing or running
  // does.
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
