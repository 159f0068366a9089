// Times of iterations on the device's clock: back-to-back intervals, every sample kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/steady_clock.h"

namespace plumb {

class StepTimer {
 public:
  // Keeps `capacity` iterations without allocating; more than that still are kept. `clock` returns seconds.
  explicit StepTimer(std::size_t capacity, std::function<double()> clock = steady_seconds);

  // The first iteration begins. Drops what was timed before.
  void start();
  // An iteration ended, and the next one began, at so many seconds since start(). Returns its seconds.
  double lap(double end_seconds);

  std::int64_t iterations() const { return static_cast<std::int64_t>(step_seconds_.size()); }
  double elapsed_seconds() const { return clock_() - start_seconds_; }  // on the host's clock
  // One per iteration, warm-up included.
  const std::vector<double>& step_seconds() const { return step_seconds_; }
  // From start() to the end of each iteration.
  const std::vector<double>& end_seconds() const { return end_seconds_; }
  // From the end of the warm-up to the end of the last iteration; 0 if there is none after the warm-up.
  double window_seconds(std::int64_t warmup) const;
  // Wall clock at start(): a stamp is this plus an end_seconds, so that it doesn't jump with the wall clock.
  std::chrono::system_clock::time_point start_wall_time() const { return start_wall_time_; }

 private:
  std::function<double()> clock_;
  double start_seconds_ = 0;
  std::chrono::system_clock::time_point start_wall_time_;
  std::vector<double> step_seconds_, end_seconds_;
};

}  // namespace plumb
