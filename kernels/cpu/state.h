// What the CPU device keeps in its "state" buffer.
#pragma once

#include <array>

#include "kernels/device.h"

namespace plumb::cpu {

struct State {
  StepState step;
  std::array<IterationMetrics, kMetricsKept> metrics;  // of iteration i at i modulo kMetricsKept
};

}  // namespace plumb::cpu
