// The iterations of a run, one after the other without a pause, timed on the device's clock.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/steady_clock.h"
#include "bench/run/runner.h"
#include "bench/run/stages.h"
#include "results/record/schema.h"

namespace plumb {

// Back-to-back intervals, every sample kept.
class StepTimer {
 public:
  // Keeps `capacity` iterations without allocating. The first iteration begins now.
  explicit StepTimer(std::size_t capacity) {
    step_seconds_.reserve(capacity);
    end_seconds_.reserve(capacity);
  }

  // An iteration ended, and the next one began, at so many seconds since the start.
  void lap(double end_seconds) {
    step_seconds_.push_back(end_seconds - (end_seconds_.empty() ? 0 : end_seconds_.back()));
    end_seconds_.push_back(end_seconds);
  }

  std::int64_t iterations() const { return static_cast<std::int64_t>(step_seconds_.size()); }
  double elapsed_seconds() const { return steady_seconds() - start_seconds_; }  // on the host's clock
  // One per iteration, warm-up included.
  const std::vector<double>& step_seconds() const { return step_seconds_; }
  // From the start to the end of each iteration.
  const std::vector<double>& end_seconds() const { return end_seconds_; }
  // From the end of the warm-up to the end of the last iteration; 0 if there is none after the warm-up.
  double window_seconds(std::int64_t warmup) const;
  // Wall clock at the start. A stamp is this plus an end_seconds: it does not jump with the wall clock.
  std::chrono::system_clock::time_point start_wall_time() const { return start_wall_time_; }

 private:
  double start_seconds_ = steady_seconds();
  std::chrono::system_clock::time_point start_wall_time_ = std::chrono::system_clock::now();
  std::vector<double> step_seconds_, end_seconds_;
};

// What a rank measured. Filled as iterations end, so that a failure in between leaves what was measured.
struct Measurements {
  StepTimer timer{0};
  std::vector<IterationMetrics> metrics;
  // Mean per iteration of the window.
  double exposed_communication_seconds = 0, data_wait_seconds = 0;
  // Runner::communicating_seconds; 0 where the device carries collectives.
  double communicating_seconds = 0;
  std::optional<GpuRecord> gpu;          // in the window
  std::vector<InstructionTime> stamped;  // of the iterations after the window, with --profile or --trace
};

class TimedRun {
 public:
  // Both must outlive it.
  TimedRun(BoundStep& step, Measurements& measured);

  // Runs --iters iterations, and more until --seconds are over, on every rank alike. Calls `ended` for each
  // in order, once it has ended; on an asynchronous device a few later ones may be under way by then. If the
  // step is captured, the first iteration runs instruction by instruction, and all others replay one capture.
  // `look_up`: called often, between instructions that the host computes, while it waits for a device, and
  // after each iteration; whatever it throws ends the loop. Null: never.
  void run(const std::function<void(std::int64_t iteration)>& ended, const std::function<void()>& look_up);

  // Runs a few more iterations with every instruction stamped, for profiles and traces, and restores
  // parameters and running statistics afterwards. On an asynchronous device each follows an iteration without
  // stamps, which keeps it busy until all of the stamped one is enqueued. Every rank calls it.
  void run_stamped();

 private:
  // Enough to keep a device busy while the host writes a log line, few enough to notice a failure soon.
  static constexpr std::int64_t kIterationsUnderWay = 4;

  std::int64_t ended_iterations() const { return measured_.timer.iterations(); }
  bool goes_on();
  void enter_iteration();
  void leave_iteration(std::int64_t iteration);
  void collect(std::int64_t under_way);
  void note_end(double end_seconds);
  void conclude();

  BoundStep& step_;
  Measurements& measured_;
  Runner runner_;
  std::function<void(std::int64_t)> ended_;
  std::function<void()> look_up_;
  std::int64_t started_ = 0;
  std::int64_t agreed_;                    // iterations that all ranks run
  std::uint64_t bytes_per_iteration_ = 0;  // of all collectives
  // Sequence numbers on the board of the iterations under way; 0: none.
  std::array<std::uint64_t, kIterationsUnderWay + 1> recorded_{};
  double device_exposed_ = 0, device_waited_ = 0, host_exposed_in_warmup_ = 0, communicating_in_warmup_ = 0,
         waited_in_warmup_ = 0;
};

}  // namespace plumb
