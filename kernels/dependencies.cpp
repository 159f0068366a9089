#include "kernels/dependencies.h"

#include <algorithm>
#include <optional>

namespace plumb {
namespace {

using Clock = std::array<std::size_t, kLanes>;  // per lane: number of steps ended

std::size_t lane_index(const Step& step) {
  return static_cast<std::size_t>(step.lane);
}

void merge(Clock& into, const Clock& from) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) into[lane] = std::max(into[lane], from[lane]);
}

// Clocks of the steps seen so far, in the Program's order.
class Clocks {
 public:
  explicit Clocks(const Program& program) : program_(program) {
    at_start_.reserve(program.steps.size());
    position_.reserve(program.steps.size());
  }

  // Clock of the lane's next step from lane order alone.
  Clock of_lane(std::size_t lane) const { return ended_[lane]; }

  // Clock once step `id` has ended.
  Clock after(StepId id) const {
    Clock clock = at_start_[id];
    clock[lane_index(program_.steps[id])] = position_[id];
    return clock;
  }

  void push(const Clock& at_start) {
    const StepId id = at_start_.size();
    const std::size_t lane = lane_index(program_.steps[id]);
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
  std::array<Clock, kLanes> ended_{};  // after the last step of each lane
};

// The latest steps that touched a buffer, per lane; lane order covers earlier ones.
struct LatestUses {
  std::array<std::optional<StepId>, kLanes> read, write;
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

void keep_later(std::optional<StepId>& latest, const std::optional<StepId>& step) {
  if (step && (!latest || *step > *latest)) latest = step;
}

// The candidates that neither lane order nor another candidate implies.
std::vector<StepId> necessary(const std::array<std::optional<StepId>, kLanes>& candidates, const Clock& known,
                              const Clocks& clocks) {
  std::vector<StepId> waits;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (!candidates[lane]) continue;
    const std::size_t position = clocks.position()[*candidates[lane]];
    bool implied = known[lane] >= position;
    for (std::size_t other = 0; other < kLanes && !implied; ++other) {
      implied = other != lane && candidates[other] && clocks.after(*candidates[other])[lane] >= position;
    }
    if (!implied) waits.push_back(*candidates[lane]);
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

}  // namespace

std::vector<std::vector<StepId>> cross_lane_dependencies(const Program& program) {
  const std::vector<std::vector<BufferId>> overlapping = overlapping_buffers(program);
  std::vector<LatestUses> latest(program.buffers.size());
  std::vector<std::vector<StepId>> dependencies(program.steps.size());
  Clocks clocks(program);
  for (StepId id = 0; id < program.steps.size(); ++id) {
    const Step& step = program.steps[id];
    const std::size_t own = lane_index(step);
    std::array<std::optional<StepId>, kLanes> candidates;
    for (const BufferUse& use : step.uses()) {
      for (BufferId other : overlapping.at(use.buffer)) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
          if (lane == own) continue;
          keep_later(candidates[lane], latest[other].write[lane]);
          if (use.writes()) keep_later(candidates[lane], latest[other].read[lane]);
        }
      }
    }
    Clock clock = clocks.of_lane(own);
    dependencies[id] = necessary(candidates, clock, clocks);
    for (StepId wait : dependencies[id]) merge(clock, clocks.after(wait));
    clocks.push(clock);
    for (const BufferUse& use : step.uses()) {
      if (use.reads()) latest[use.buffer].read[own] = id;
      if (use.writes()) latest[use.buffer].write[own] = id;
    }
  }
  return dependencies;
}

HappensBefore::HappensBefore(const Program& program) {
  const std::vector<std::vector<StepId>> dependencies = cross_lane_dependencies(program);
  Clocks clocks(program);
  for (StepId id = 0; id < program.steps.size(); ++id) {
    lane_of_.push_back(lane_index(program.steps[id]));
    Clock clock = clocks.of_lane(lane_of_.back());
    for (StepId wait : dependencies[id]) merge(clock, clocks.after(wait));
    clocks.push(clock);
  }
  position_ = clocks.position();
  clock_ = clocks.at_start();
}

bool HappensBefore::operator()(StepId before, StepId after) const {
  return clock_[after][lane_of_[before]] >= position_[before];
}

}  // namespace plumb
