#include "kernels/program/dependencies.h"

#include <algorithm>
#include <optional>

namespace plumb {
namespace {

using Clock = LaneCounts;  // of instructions that have ended

std::size_t lane_index(const Instruction& instruction) {
  return static_cast<std::size_t>(instruction.lane);
}

void merge(Clock& into, const Clock& from) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) into[lane] = std::max(into[lane], from[lane]);
}

// Clocks of the instructions seen so far, in the Program's order.
class Clocks {
 public:
  explicit Clocks(const Program& program) : program_(program) {}

  // Clock of the lane's next instruction from lane order alone.
  Clock of_lane(std::size_t lane) const { return ended_[lane]; }

  // Clock once instruction `id` has ended.
  Clock after(InstructionId id) const {
    Clock clock = at_start_[id];
    clock[lane_index(program_.instructions[id])] = position_[id];
    return clock;
  }

  void push(const Clock& at_start) {
    const InstructionId id = at_start_.size();
    const std::size_t lane = lane_index(program_.instructions[id]);
    at_start_.push_back(at_start);
    position_.push_back(at_start[lane] + 1);
    ended_[lane] = after(id);
  }

  const std::vector<Clock>& at_start() const { return at_start_; }
  const std::vector<std::size_t>& position() const { return position_; }

 private:
  const Program& program_;
  std::vector<Clock> at_start_;
  std::vector<std::size_t> position_;
  std::array<Clock, kLanes> ended_{};  // after the last instruction of each lane
};

// The latest instructions that touched a buffer, per lane; lane order covers earlier ones.
struct LatestUses {
  std::array<std::optional<InstructionId>, kLanes> read, write;
};

struct ByteRange {
  std::size_t begin = 0, end = 0;
  bool overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};

ByteRange range_of(const Buffer& buffer) {
  const std::size_t begin = buffer.view ? buffer.view->offset : 0;
  return {begin, begin + std::max<std::size_t>(buffer.bytes, 1)};
}

// For each buffer, the buffers that share bytes with it, itself included.
std::vector<std::vector<BufferId>> overlapping_buffers(const Program& program) {
  std::vector<std::vector<BufferId>> family(program.buffers.size());
  for (BufferId id = 0; id < program.buffers.size(); ++id) family[root_of(program, id)].push_back(id);
  std::vector<std::vector<BufferId>> overlapping(program.buffers.size());
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const ByteRange range = range_of(program.buffers[id]);
    for (BufferId other : family[root_of(program, id)]) {
      if (range.overlaps(range_of(program.buffers[other]))) overlapping[id].push_back(other);
    }
  }
  return overlapping;
}

// The candidates that neither lane order nor another candidate implies.
std::vector<InstructionId> necessary(const std::array<std::optional<InstructionId>, kLanes>& candidates,
                                     const Clock& known, const Clocks& clocks) {
  std::vector<InstructionId> waits;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (!candidates[lane]) continue;
    const std::size_t position = clocks.position()[*candidates[lane]];
    bool implied = known[lane] >= position;
    for (std::size_t other = 0; other < kLanes && !implied; ++other) {
      implied = other != lane && candidates[other] && clocks.after(*candidates[other])[lane] >= position;
    }
    if (!implied) waits.push_back(*candidates[lane]);
  }
  std::ranges::sort(waits);
  return waits;
}

struct Order {
  std::vector<std::vector<InstructionId>> dependencies;
  Clocks clocks;
};

Order order_of(const Program& program) {
  const std::vector<std::vector<BufferId>> overlapping = overlapping_buffers(program);
  std::vector<LatestUses> latest(program.buffers.size());
  Order order{.clocks = Clocks(program)};
  for (InstructionId id = 0; id < program.instructions.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const std::size_t own = lane_index(instruction);
    std::array<std::optional<InstructionId>, kLanes> candidates;
    for (const BufferUse& use : instruction.uses()) {
      for (BufferId other : overlapping.at(use.buffer)) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
          if (lane == own) continue;
          candidates[lane] = std::max(candidates[lane], latest[other].write[lane]);
          if (use.writes()) candidates[lane] = std::max(candidates[lane], latest[other].read[lane]);
        }
      }
    }
    Clock clock = order.clocks.of_lane(own);
    order.dependencies.push_back(necessary(candidates, clock, order.clocks));
    for (InstructionId wait : order.dependencies.back()) merge(clock, order.clocks.after(wait));
    order.clocks.push(clock);
    for (const BufferUse& use : instruction.uses()) {
      if (use.reads()) latest[use.buffer].read[own] = id;
      if (use.writes()) latest[use.buffer].write[own] = id;
    }
  }
  return order;
}

}  // namespace

std::vector<std::vector<InstructionId>> cross_lane_dependencies(const Program& program) {
  return order_of(program).dependencies;
}

HappensBefore::HappensBefore(const Program& program) {
  const Order order = order_of(program);
  for (const Instruction& instruction : program.instructions) lane_of_.push_back(lane_index(instruction));
  position_ = order.clocks.position();
  ended_before_ = order.clocks.at_start();
}

bool HappensBefore::operator()(InstructionId before, InstructionId after) const {
  return ended_before_[after][lane_of_[before]] >= position_[before];
}

}  // namespace plumb
