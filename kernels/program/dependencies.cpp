#include "kernels/program/dependencies.h"

#include <algorithm>

namespace plumb {
namespace {

void merge(LaneCounts& into, const LaneCounts& from) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) into[lane] = std::max(into[lane], from[lane]);
}

// For each lane, the number of the latest instruction that touched a buffer; lane order covers earlier ones.
struct LatestUses {
  LaneCounts read{}, write{};
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

}  // namespace

HappensBefore::HappensBefore(const Program& program) {
  const std::vector<std::vector<BufferId>> overlapping = overlapping_buffers(program);
  std::vector<LatestUses> latest(program.buffers.size());
  for (InstructionId id = 0; id < program.instructions.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const auto own = static_cast<std::size_t>(instruction.lane);
    LaneCounts needed{};
    for (const BufferUse& use : instruction.uses()) {
      for (BufferId other : overlapping.at(use.buffer)) {
        merge(needed, latest[other].write);
        if (use.writes()) merge(needed, latest[other].read);
      }
    }
    LaneCounts ended{};
    if (!of_lane_[own].empty()) ended = ended_after(of_lane_[own].back());
    waits_.push_back(necessary(needed, ended));
    for (InstructionId wait : waits_.back()) merge(ended, ended_after(wait));
    lane_of_.push_back(own);
    ended_before_.push_back(ended);
    of_lane_[own].push_back(id);
    position_.push_back(of_lane_[own].size());
    for (const BufferUse& use : instruction.uses()) {
      if (use.reads()) latest[use.buffer].read[own] = position_[id];
      if (use.writes()) latest[use.buffer].write[own] = position_[id];
    }
  }
}

bool HappensBefore::operator()(InstructionId before, InstructionId after) const {
  return ended_before_[after][lane_of_[before]] >= position_[before];
}

LaneCounts HappensBefore::ended_after(InstructionId id) const {
  LaneCounts ended = ended_before_[id];
  ended[lane_of_[id]] = position_[id];
  return ended;
}

std::vector<InstructionId> HappensBefore::necessary(const LaneCounts& needed, const LaneCounts& known) const {
  std::vector<InstructionId> waits;
  const auto last_of = [&](std::size_t lane) { return of_lane_[lane][needed[lane] - 1]; };
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    bool implied = known[lane] >= needed[lane];
    for (std::size_t other = 0; other < kLanes && !implied; ++other)
      implied = other != lane && needed[other] > 0 && ended_after(last_of(other))[lane] >= needed[lane];
    if (!implied) waits.push_back(last_of(lane));
  }
  std::ranges::sort(waits);
  return waits;
}

}  // namespace plumb
