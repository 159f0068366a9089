#include "bench/data/loading_pace.h"

#include <algorithm>
#include <cmath>

namespace plumb {
namespace {

constexpr double kSpare = 1.5;
// Weight of the newest: images come by the hundred per step, and a slow one is to be remembered.
constexpr double kNewestImage = 1.0 / 64, kNewestStep = 1.0 / 8, kForgotten = 1.0 / 1024;

void blend(double& mean, double newest, double weight) {
  mean = mean == 0 ? newest : mean + weight * (newest - mean);
}

}  // namespace

void LoadingPace::image_took(double seconds) {
  blend(image_seconds_, seconds, kNewestImage);
  slowest_image_seconds_ = std::max(seconds, slowest_image_seconds_ * (1 - kForgotten));
}

void LoadingPace::step_took(double seconds) {
  blend(step_seconds_, seconds, kNewestStep);
}

int LoadingPace::workers() const {
  if (!limits_.as_needed || image_seconds_ == 0 || step_seconds_ == 0) return limits_.workers;
  const double needed = kSpare * image_seconds_ * static_cast<double>(limits_.batch) / step_seconds_;
  return static_cast<int>(std::clamp(std::ceil(needed), 1.0, static_cast<double>(limits_.workers)));
}

std::uint64_t LoadingPace::ahead() const {
  const auto batch = static_cast<std::uint64_t>(limits_.batch);
  const std::uint64_t least = 1 + (static_cast<std::uint64_t>(workers()) + batch - 1) / batch;
  if (step_seconds_ == 0) return std::min(least, limits_.ahead);
  const double steps = std::ceil(slowest_image_seconds_ / step_seconds_);
  return std::min(std::max(least, 1 + static_cast<std::uint64_t>(std::min(steps, 1e6))), limits_.ahead);
}

}  // namespace plumb
