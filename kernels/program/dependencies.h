// Instruction order from data dependencies. Instructions of one lane run in sequence; an instruction waits
// for instructions of other lanes that touch the same buffers (read after write, write after read, write
// after write).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/program/program.h"

namespace plumb {

using LaneCounts = std::array<std::size_t, kLanes>;  // a number of instructions per lane

// The partial order "a ends before b starts" given by lanes and dependencies.
class HappensBefore {
 public:
  explicit HappensBefore(const Program& program);
  bool operator()(InstructionId before, InstructionId after) const;

  // For each instruction, the latest earlier instructions of *other* lanes that it must wait for: at most one
  // per lane, and none that another one implies.
  const std::vector<std::vector<InstructionId>>& waits() const { return waits_; }
  // The instruction's number in its own lane, from 1.
  std::size_t position(InstructionId id) const { return position_[id]; }
  // How many of each lane's instructions are guaranteed to have ended when it starts.
  const LaneCounts& ended_before(InstructionId id) const { return ended_before_[id]; }

 private:
  LaneCounts ended_after(InstructionId id) const;
  // Takes the last `needed` instruction of each lane, and returns those that neither `known` nor another of
  // them implies.
  std::vector<InstructionId> necessary(const LaneCounts& needed, const LaneCounts& known) const;

  std::array<std::vector<InstructionId>, kLanes> of_lane_;
  std::vector<std::vector<InstructionId>> waits_;
  std::vector<std::size_t> lane_of_;
  std::vector<std::size_t> position_;
  std::vector<LaneCounts> ended_before_;
};

}  // namespace plumb
