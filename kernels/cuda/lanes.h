// The streams that a Program's lanes are, the order between them, and the time on them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/cuda/runtime.h"
#include "kernels/device.h"
#include "kernels/program.h"

namespace plumb::cuda {

class Lanes {
 public:
  Lanes();

  cudaStream_t stream(Lane lane) const { return streams_[static_cast<std::size_t>(lane)].get(); }
  // As Device has them.
  void signal(StepId step, Lane lane);
  void wait(StepId step, Lane lane);
  std::size_t mark(Lane lane);
  bool reached(std::size_t mark) const;
  void synchronize() const;
  // Waits as synchronize() does; what failed before stays untold. For the way out of a failure.
  void drain() const noexcept;
  // The compute lane waits for all that the communication lane was given.
  void join();
  // Records what `enqueue` gives to the compute lane and to lanes that wait for it; each keeps its priority.
  // Errors leave no lane capturing.
  ExecutableGraph capture(const std::function<void()>& enqueue);

 private:
  static constexpr std::size_t kMarks = 256;  // that are asked for at a time at most
  std::vector<Stream> streams_;               // by Lane
  std::vector<Event> signals_;                // by StepId, made when first used
  std::vector<Event> marks_;                  // mark m is at m modulo kMarks
  std::size_t next_mark_ = 0;
  Event joined_;
};

// Ends of iterations and times of steps, from events.
class Clock {
 public:
  void start(const Lanes& lanes);
  void end_iteration(const Lanes& lanes);
  std::optional<double> next_end();
  // The stream waits for the end of the iteration before the one that is enqueued now: nothing if there was
  // none since start().
  void wait_for_iteration_before_last(cudaStream_t stream) const;

  void stamp(const Lanes& lanes, StepId step, Lane lane, bool after);
  std::vector<StepTime> step_times();

 private:
  static constexpr std::size_t kIterationsInFlight = 64;
  struct Stamp {
    StepId step = 0;
    Event begin, end;
  };
  Event start_;
  std::vector<Event> ends_;  // of iteration i at i modulo kIterationsInFlight
  std::uint64_t ended_ = 0, told_ = 0;
  double told_seconds_ = 0;
  std::vector<Stamp> stamps_;
};

}  // namespace plumb::cuda
