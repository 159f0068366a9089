// Streams of a Program's lanes, their ordering, and time on them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/cuda/runtime/runtime.h"
#include "kernels/device.h"
#include "kernels/program/program.h"

namespace plumb::cuda {

class Lanes {
 public:
  Lanes();

  cudaStream_t stream(Lane lane) const { return streams_[static_cast<std::size_t>(lane)].get(); }
  // As in Device.
  void signal(InstructionId instruction, Lane lane);
  void wait(InstructionId instruction, Lane lane);
  std::size_t mark(Lane lane);
  bool reached(std::size_t mark) const;
  void synchronize() const;
  // Waits like synchronize() but reports no earlier failure. For cleanup after a failure.
  void drain() const noexcept;
  // The compute lane waits for all work enqueued on the communication lane.
  void join();
  // Captures the work that `enqueue` puts on the compute lane and on lanes that wait for it; each keeps its
  // priority. After an error no lane is left capturing.
  ExecutableGraph capture(const std::function<void()>& enqueue);

 private:
  static constexpr std::size_t kMarks = 256;  // marks in use at a time, at most
  std::vector<Stream> streams_;               // by Lane
  std::vector<Event> signals_;                // by InstructionId, made when first used
  std::vector<Event> marks_;                  // mark m is at m modulo kMarks
  std::size_t next_mark_ = 0;
  Event joined_;
};

// Ends of iterations and times of instructions, from events.
class Clock {
 public:
  void start(const Lanes& lanes);
  void end_iteration(const Lanes& lanes);
  std::optional<double> next_end();
  // Makes the stream wait for the end of the iteration before the one being enqueued; nothing if there was
  // none since start().
  void wait_for_iteration_before_last(cudaStream_t stream) const;

  void stamp(const Lanes& lanes, InstructionId instruction, Lane lane, bool after);
  std::vector<InstructionTime> step_times();

 private:
  static constexpr std::size_t kIterationsInFlight = 64;
  struct Stamp {
    InstructionId instruction = 0;
    Event begin, end;
  };
  Event start_;
  std::vector<Event> ends_;  // of iteration i at i modulo kIterationsInFlight
  std::uint64_t ended_ = 0, told_ = 0;
  double told_seconds_ = 0;
  std::vector<Stamp> stamps_;
};

}  // namespace plumb::cuda
