// Instruction order from data dependencies. Instructions of one lane run in sequence; an instruction waits
// for instructions of other lanes that touch the same buffers (read after write, write after read, write
// after write).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/program.h"

namespace plumb {

// For each instruction, the latest earlier instructions of *other* lanes that it must wait for (at most one
// per lane).
std::vector<std::vector<InstructionId>> cross_lane_dependencies(const Program& program);

// The partial order "a ends before b starts" given by lanes and dependencies.
class HappensBefore {
 public:
  explicit HappensBefore(const Program& program);
  bool operator()(InstructionId before, InstructionId after) const;

 private:
  std::vector<std::size_t> lane_of_;
  std::vector<std::size_t> position_;  // 1-based, in its own lane
  // clock_[s][lane]: number of the lane's instructions that are guaranteed to have ended when s starts
  std::vector<std::array<std::size_t, kLanes>> clock_;
};

}  // namespace plumb
