// Contents of the CPU device's "state" buffer.
#pragma once

#include <array>

#include "kernels/device.h"

namespace plumb::cpu {

struct State {
  StepState step;
  std::array<IterationMetrics, kMetricsKept> metrics;  // iteration i is at index i modulo kMetricsKept
};

}  // namespace plumb::cpu
