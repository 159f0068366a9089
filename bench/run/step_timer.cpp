#include "bench/run/step_timer.h"

namespace plumb {

StepTimer::StepTimer(std::size_t capacity, std::function<double()> clock) : clock_(std::move(clock)) {
  step_seconds_.reserve(capacity);
  end_seconds_.reserve(capacity);
  start();
}

void StepTimer::start() {
  step_seconds_.clear();
  end_seconds_.clear();
  start_wall_time_ = std::chrono::system_clock::now();
  start_seconds_ = clock_();
}

double StepTimer::lap(double end_seconds) {
  const double seconds = end_seconds - (end_seconds_.empty() ? 0 : end_seconds_.back());
  step_seconds_.push_back(seconds);
  end_seconds_.push_back(end_seconds);
  return seconds;
}

double StepTimer::window_seconds(std::int64_t warmup) const {
  if (warmup < 0 || iterations() <= warmup) return 0;
  const double begin = warmup == 0 ? 0 : end_seconds_[static_cast<std::size_t>(warmup - 1)];
  return end_seconds_.back() - begin;
}

}  // namespace plumb
