// Instruction times as runs have them: lognormal noise that is like its neighbours', now and then a late
// step.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "tests/results/simulated_runs.h"

namespace plumb {

struct StepNoise {
  double deviation = 0.01;    // relative
  double correlation = 0.3;   // of a step with the next
  double late_share = 0.005;  // of steps, which take 1.2 to 1.5 times as long
};

// `factor`: of step i, by how much it is longer than it should be.
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
