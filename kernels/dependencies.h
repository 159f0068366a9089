// Step order from data dependencies. Steps of one lane run in sequence; a step waits for steps of other lanes
// that touch the same buffers (read after write, write after read, write after write).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/program.h"

namespace plumb {

// For each step, the latest earlier steps of *other* lanes that it must wait for (at most one per lane).
std::vector<std::vector<StepId>> cross_lane_dependencies(const Program& program);

// The partial order "a ends before b starts" given by lanes and dependencies.
class HappensBefore {
 public:
  explicit HappensBefore(const Program& program);
  bool operator()(StepId before, StepId after) const;

 private:
  std::vector<std::size_t> lane_of_;
  std::vector<std::size_t> position_;  // 1-based, in its own lane
  // clock_[s][lane]: number of the lane's steps that are guaranteed to have ended when s starts
  std::vector<std::array<std::size_t, kLanes>> clock_;
};

}  // namespace plumb
