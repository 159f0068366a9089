// The order that a Program's buffers demand, and nothing else: steps of one lane run one after the other; a
// step waits for steps of other lanes that touch the same buffers (read after write, write after read or
// write).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/program.h"

namespace plumb {

// For each step, the latest earlier steps of *other* lanes that must end before it starts (at most one per
// lane).
std::vector<std::vector<StepId>> cross_lane_dependencies(const Program& program);

// The partial order "a ends before b starts" that lanes and dependencies give.
class HappensBefore {
 public:
  explicit HappensBefore(const Program& program);
  bool operator()(StepId before, StepId after) const;

 private:
  std::vector<std::size_t> lane_of_;
  std::vector<std::size_t> position_;  // 1-based, in its own lane
  // clock_[s][lane]: how many steps of the lane have surely ended when s starts
  std::vector<std::array<std::size_t, kLanes>> clock_;
};

}  // namespace plumb
