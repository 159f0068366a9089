#include "results/simulation/simulator.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/quadrature/trapezoidal.hpp>
#include <cmath>

namespace plumb {
namespace {

// The clock of one rank, and what its collectives have done so far.
struct SimulatedRank {
  double now = 0;
  SimulatedStep step;

  // A wait until `end` is exposed time of every collective that runs in it; they run one at a time.
  void wait_until(double end) {
    if (end <= now) return;
    for (SimulatedCollective& one : step.collectives)
      one.exposed += std::max(0.0, std::min(end, one.end) - std::max(now, one.start));
    step.exposed_seconds += end - now;
    now = end;
  }
};

}  // namespace

SimulatedStep simulate(const StepModel& step,
                       const std::function<double(const StepCollective&)>& seconds_of) {
  SimulatedRank rank;
  std::size_t next = 0;
  double line_free = 0;
  const auto start_ready = [&](std::size_t computed) {
    for (; next < step.collectives.size() && step.collectives[next].after <= computed; ++next) {
      const double start = std::max(rank.now, line_free);
      line_free = start + seconds_of(step.collectives[next]);
      rank.step.collectives.push_back({.ready = rank.now, .start = start, .end = line_free});
    }
  };
  for (std::size_t i = 0; i < step.compute.size(); ++i) {
    start_ready(i);
    for (std::size_t c = 0; c < next; ++c)
      if (step.collectives[c].before == i) rank.wait_until(rank.step.collectives[c].end);
    rank.now += step.compute[i].seconds;
  }
  start_ready(step.compute.size());
  rank.wait_until(line_free);
  rank.step.seconds = rank.now;
  return rank.step;
}

// E = integral of x n phi(x) Phi(x)^(n-1) (David & Nagaraja, Order Statistics, 3rd ed., 3.1) over ± 9
// deviations, outside of which a million values lie with probability 1e-12.
double expected_maximum(int count) {
  if (count < 2) return 0;
  constexpr double kReach = 9;
  const boost::math::normal normal;
  return boost::math::quadrature::trapezoidal(
      [&](double x) { return x * count * pdf(normal, x) * std::pow(cdf(normal, x), count - 1); }, -kReach,
      kReach);
}

}  // namespace plumb
