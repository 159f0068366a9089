// Simulated times with realistic noise: lognormal, autocorrelated, with occasional late steps.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "tests/results/simulated_runs.h"

namespace plumb {

struct StepNoise {
  double deviation = 0.01;    // relative
  double correlation = 0.3;   // between consecutive steps
  double late_share = 0.005;  // share of steps that take 1.2 to 1.5 times as long
};

// `factor`: step i's slowdown.
inline std::vector<double> simulated_steps(SimulatedNoise& noise, std::size_t count, const StepNoise& of,
                                           const std::function<double(std::size_t)>& factor = {}) {
  std::vector<double> steps;
  double state = noise.normal();
  for (std::size_t i = 0; i < count; ++i) {
    state = of.correlation * state + std::sqrt(1 - of.correlation * of.correlation) * noise.normal();
    double step = 0.1 * std::exp(of.deviation * state);
    if (noise.uniform() < of.late_share) step *= 1.2 + 0.3 * noise.uniform();
    steps.push_back(factor ? step * factor(i) : step);
  }
  return steps;
}

}  // namespace plumb
