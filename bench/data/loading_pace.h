// How many workers load images, and how far ahead, so that training doesn't wait: from measured times.
#pragma once

#include <cstdint>

namespace plumb {

struct PaceLimits {
  std::int64_t batch = 1;
  int workers = 1;          // at most
  bool as_needed = false;   // else always all of them
  std::uint64_t ahead = 1;  // batches at most
};

class LoadingPace {
 public:
  explicit LoadingPace(const PaceLimits& limits) : limits_(limits) {}

  // From file to pixels, by one worker.
  void image_took(double seconds);
  // From one batch to the next, without waiting for it.
  void step_took(double seconds);

  // As many as load at 1.5 times the rate at which steps take images; all of them until both are known.
  int workers() const;
  // Batches ahead of the one that a step has: one, and as many as train while the slowest image loads. At
  // least enough to give every worker an image.
  std::uint64_t ahead() const;

 private:
  PaceLimits limits_;
  double image_seconds_ = 0, slowest_image_seconds_ = 0, step_seconds_ = 0;  // recent ones; 0: none yet
};

}  // namespace plumb
